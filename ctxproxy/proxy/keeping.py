"""Settling: once per request, whatever ended it, before the byte that ends the answer leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ctxproxy.config.schema import Settings
from ctxproxy.core.effects import AppendMessages, Effect, MoveTip
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.plan import background_tip
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import NOTHING_SPENT, Session, SessionKey, Spent, Summary, runs_of, span_of
from ctxproxy.core.reply import Reply
from ctxproxy.core.rewrites import any_media
from ctxproxy.core.sessions import Joined, Reconciled, manner_seen, moves_tip, rebased
from ctxproxy.core.settle import Ending, settle
from ctxproxy.core.situation import Situation
from ctxproxy.core.spending import spent_on
from ctxproxy.errors import CtxproxyError, StoreUnavailable
from ctxproxy.proxy.attempt import Refused, Whole
from ctxproxy.proxy.notes import ToNote
from ctxproxy.proxy.preloading import carry_over
from ctxproxy.proxy.prepare import Prepared, is_erased, stored_message, user_of
from ctxproxy.proxy.quotes import note_quotes
from ctxproxy.proxy.rescue import Got
from ctxproxy.proxy.state import State
from ctxproxy.proxy.streams import Stream
from ctxproxy.proxy.summary_desk import Asked, need_of

log = logging.getLogger("ctxproxy")
SETTLE_WITHIN_S = 2.0
"""How long the end of an answer may wait for the store; writing goes on behind it."""
REBASES = 20
"""How often a thin request's messages are put behind those of another that was quicker: of this process one at a time is at it."""


class Keeping:
    """Keeps one request and its answer; `settle` may be called often and acts once."""

    def __init__(self, state: State, settings: Settings, prepared: Prepared, got: Got, asked: Callable[[], Asked]) -> None:
        """`asked` gives how a model can be asked on the request's behalf."""
        self._state = state
        self._settings = settings
        self._asked = asked
        self._prepared = prepared
        self._got = got
        self._settled = False
        self._is_erased = is_erased(state, prepared)
        self._leaves: ToNote | None = None

    async def settle(self, whole: bool) -> None:
        """Write what is to be kept; returns when it is durable, or after SETTLE_WITHIN_S. Never raises but for cancellation."""
        if self._settled:
            return
        self._settled = True
        if self._prepared.caller.key is None:
            self._spent(self._reply())
            return
        writing = self._state.tasks.begin(self._write(whole), "settle")
        if writing is not None:
            await asyncio.wait([writing], timeout=SETTLE_WITHIN_S)

    async def drain(self, stream: Stream) -> None:
        """Read an answer to its end although the client is gone, then keep it."""
        whole = False
        try:
            async for chunk in stream.pump.rest():
                stream.watch(chunk)
            stream.end()
            whole = True
        except CtxproxyError as error:
            log.info("an answer that nobody waits for broke off: %s", error.code)
        await self.settle(whole)
        await stream.response.close()

    async def _write(self, whole: bool) -> None:
        reply = self._reply()
        complete = whole and reply is not None and reply.complete
        replies = tuple(choice.message for choice in reply.choices) if reply else ()
        spent, is_there = self._spent(reply), not self._is_erased()
        self._leaves = self._to_note()
        try:
            is_there = is_there and await self._apply(replies, spent, complete=complete)
            if is_there:
                self._state.health.wrote()
        except StoreUnavailable as error:
            self._state.metrics.store_errors.inc()
            self._state.health.failed(f"the store cannot be written: {error.message}")
            log.warning("could not write session %s to the store: %s", self._name, error.message)
        await self._learn(reply)
        if not is_there or self._is_erased():
            return
        self._summarize_ahead()
        if self._leaves:
            self._state.notes.begin(self._settings, self._leaves, self._asked)
        self._carry_over()
        if complete and self._settings.memory.outcomes:
            self._state.outcomes.begin(self._got.plan, replies)
        if complete and replies and self._got.plan.brought:
            self._state.tasks.start(note_quotes(self._state, self._got.plan, replies), "quoted")
        self._foresee()

    @property
    def _name(self) -> str:
        key = self._prepared.caller.key
        return key.id if key else "-"

    def _reply(self) -> Reply | None:
        match self._got.result:
            case Stream() as stream:
                stream.catch_up()
                return stream.assembler.result()
            case Whole(reply=reply):
                return reply
            case Refused():
                return None

    def _spent(self, reply: Reply | None) -> Spent:
        """What the request cost, counted; an upstream charges nothing for a refusal."""
        if isinstance(self._got.result, Refused):
            return NOTHING_SPENT
        try:
            spent = spent_on(self._got.situation, self._got.plan, self._prepared.session, reply.usage if reply else None)
        except Exception as error:
            log.exception("the cost of a request could not be told: %s", type(error).__name__)
            return NOTHING_SPENT
        self._state.metrics.count_spent(spent)
        return spent

    async def _learn(self, reply: Reply | None) -> None:
        """The upstream's own count of the prompt calibrates ours, and shows windows larger than believed; pictures tell nothing."""
        caller, plan, model = self._prepared.caller, self._got.plan, self._prepared.chat.model
        origin = caller.target.origin
        recall = self._got.recall
        if recall is not None and recall.calls:
            return  # what was sent is not what the plan has counted
        refused_before = self._got.attempts > 1  # what the refusal stated is surer than what an answer right after it shows
        if reply is not None and reply.usage is not None and not refused_before and not any_media(plan.messages):
            counted = round(plan.tokens_sent / self._prepared.gauge.factor)
            await self._state.windows.succeeded(origin, model, counted=counted, usage=reply.usage, rules=self._settings.models)

    def _summarize_ahead(self) -> None:
        """Begin the summary that the next compaction will want, so that nobody has to wait for it."""
        key, situation = self._prepared.caller.key, self._got.situation
        if key is None or not self._settings.summarizer.background or isinstance(self._got.result, Refused):
            return
        tip = background_tip(situation, self._got.plan)
        if tip and not self._state.summaries.is_busy(key):
            need = need_of(situation, tip, self._settings.summarizer, self._asked().window_tokens)
            self._state.summaries.write_behind(key, need, self._asked())

    def _foresee(self) -> None:
        """Have the next compaction worked out ahead, but not from what only a rescue has made of a request."""
        key, got = self._prepared.caller.key, self._got
        if key is not None and not isinstance(got.result, Refused) and got.attempts == 1:
            self._state.foresight.begin(key, got.situation, got.plan, lambda: self._summary(key, got.plan.wants))

    async def _summary(self, key: SessionKey, tip: Tip) -> Summary | None:
        """The summary that is being written up to a tip, when it is there; None if it could not be had."""
        await self._state.summaries.done(key, tip)
        return next(iter(await self._state.store.summaries(key, [tip])), None)

    def _to_note(self) -> ToNote | None:
        """What has left the prompt and is to be noted in the day's memory file; a refused request's decision is not kept."""
        key, got = self._prepared.caller.key, self._got
        if key is None or isinstance(got.result, Refused):
            return None
        return self._state.notes.to_note(self._settings, key, self._user, got.situation, got.plan)

    def _carry_over(self) -> None:
        """What later sessions of the user will begin with, and what this one began with, where that had to go after an overflow."""
        key, state = self._prepared.caller.key, self._state
        if key is None or not self._user:
            return
        dropped = self._prepared.situation.preload and not self._got.situation.preload
        wanted = self._settings.memory.preload.sessions > 0
        state.tasks.start(carry_over(state, key, self._got.situation.count_text, digest=wanted, drop=bool(dropped)), "carry over")

    @property
    def _user(self) -> str:
        """Whose the session is, also where this request does not say it."""
        return user_of(self._prepared.caller, self._prepared.session)

    async def _apply(self, replies: tuple[Message, ...], spent: Spent, *, complete: bool) -> bool:
        """False, with nothing kept, if the session was erased while the request was answered."""
        situation, plan, session = self._got.situation, self._got.plan, self._prepared.session
        key, store = self._prepared.caller.key, self._state.store
        assert key is not None
        effects = self._effects(session, situation, plan, replies, spent, complete=complete)
        if await store.apply(effects):
            self._remember(key, session, situation.reconciled, effects)
            return True
        if _is_gone(session, await store.session(key)):
            return False
        if situation.reconciled.joined is not Joined.THIN:
            self._remember(key, session, situation.reconciled, effects)
            return True
        async with self._state.turns.setdefault(key, asyncio.Lock()):  # else of many at once all but one are late, again and again
            for _ in range(REBASES if complete else 0):
                before, session = session, await store.session(key)
                if _is_gone(before, session):
                    return False
                situation = await self._behind(key, session, situation)
                plan = replace(plan, checkpoint=None, recalled=None)
                effects = self._effects(session, situation, plan, replies, spent, complete=complete)
                if await store.apply(effects):
                    self._remember(key, session, situation.reconciled, effects)
                    return True
        if complete:
            log.warning("session %s: %d other requests were quicker; this answer is in the log, beside the conversation", key.id, REBASES)
        return await store.apply([effect for effect in effects if not isinstance(effect, MoveTip)])

    def _effects(
        self, session: Session | None, situation: Situation, plan: Plan, replies: tuple[Message, ...], spent: Spent, *, complete: bool
    ) -> list[Effect]:
        prepared = self._prepared
        caller = prepared.caller
        assert caller.key is not None
        ending = Ending(
            caller.key,
            session,
            manner_seen(situation.reconciled, prepared.chat.messages),
            prepared.frame,
            prepared.chat.model,
            caller.profile,
            prepared.fixed_tokens,
            replies,
            complete,
            self._state.clock(),
            recall=prepared.bare is not None and not (self._got.recall and self._got.recall.refused),
            spent=spent,
            user=caller.user,
        )
        return [*settle(situation, plan, ending), *(self._leaves.dues if self._leaves and plan.checkpoint else ())]

    async def _behind(self, key: SessionKey, session: Session | None, situation: Situation) -> Situation:
        """A thin request's messages behind what the session holds now."""
        rows = await self._state.store.history(key, session.tip) if session else []
        joined = rebased(situation.reconciled, [stored_message(row) for row in rows], [row.tip for row in rows])
        counts = (*(row.tokens for row in rows), *map(situation.count, joined.history[len(rows) :]))
        return replace(situation, reconciled=joined, counts=counts)

    def _remember(self, key: SessionKey, session: Session | None, joined: Reconciled, effects: Sequence[Effect]) -> None:
        """Begin to note what the stored messages tell; those of a side request (a title, tags) are the asking program's own words."""
        own = joined.joined is Joined.THIN or moves_tip(session, joined, self._prepared.frame)
        runs = runs_of(row for effect in effects if isinstance(effect, AppendMessages) for row in effect.messages)
        turn = self._state.identities.past(joined.history).users - sum(m.role == "user" for m in joined.history[joined.fresh_from :])
        turns: dict[Tip, int] = {}
        for run in runs:
            before = at = turns.get(run[0].parent, turn)
            for row in run:
                turns[row.tip] = at = at + (row.role == "user")
            self._state.index.note(key, span_of(run), before)
            if self._settings.memory.facts and own:
                self._state.facts.note(key, self._user, span_of(run))


def _is_gone(session: Session | None, now: Session | None) -> bool:
    """Whether a session was erased; there may be another one of its name by now."""
    return session is not None and (now is None or now.created != session.created)
