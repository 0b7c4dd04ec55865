"""From a parsed request to the situation that a plan is made for: load, reconcile, count, budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import structs

from ctxproxy.config.policies import policy_for
from ctxproxy.config.schema import Settings
from ctxproxy.core import recall_tool
from ctxproxy.core.budget import budget
from ctxproxy.core.carryover import Restore
from ctxproxy.core.checkpoints import variant_of
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.forgetting import cleared
from ctxproxy.core.messages import Message, Tip, leading_system, read
from ctxproxy.core.pasts import LOOKED_BACK, Past
from ctxproxy.core.policy import Policy
from ctxproxy.core.preloads import fits_beside
from ctxproxy.core.presets import acts_when_short
from ctxproxy.core.records import Checkpoint, Session, StoredMessage, Summary, WindowBelief
from ctxproxy.core.restoring import left_behind
from ctxproxy.core.sessions import Joined, Reconciled, answers_open_calls, frame_of, join_full, join_thin, may_be_thin
from ctxproxy.core.situation import Situation
from ctxproxy.core.steps import stopped
from ctxproxy.core.tokens import has_media, surely_fits
from ctxproxy.core.wire import ChatRequest
from ctxproxy.proxy import counting
from ctxproxy.proxy.gauges import Gauge
from ctxproxy.proxy.identify import Caller, target_for
from ctxproxy.proxy.preloading import Opening, preload_for, stored_preload
from ctxproxy.proxy.restoring import restore_for
from ctxproxy.proxy.retention import awake
from ctxproxy.proxy.state import State

NO_TIPS: frozenset[Tip] = frozenset()
CHECKPOINTS = 4
"""Of each variant so many decisions are read, those that reach furthest: one is replayed, or the one before where that is void. A night of
an agent makes a thousand, each as long as the history was.
"""


class Ask(msgspec.Struct, frozen=True):
    """What a prompt is asked with, beside its messages."""

    model: str
    gauge: Gauge
    policy: Policy
    leading: tuple[Message, ...]
    max_output: int | None
    fixed_tokens: int
    """Tools and response format."""
    session: Session | None = None
    preload: tuple[Message, ...] = ()
    restore: Restore | None = None


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided and kept for a history."""

    checkpoints: Sequence[Checkpoint] = ()
    summaries: Sequence[Summary] = ()
    pins: Sequence[str] = ()


NOTHING_DECIDED = Decisions()


class Prepared(msgspec.Struct, frozen=True):
    """A request with all that was looked up for it."""

    chat: ChatRequest
    caller: Caller
    session: Session | None
    frame: str
    gauge: Gauge
    fixed_tokens: int
    """Tools and response format, without the leading messages."""
    situation: Situation
    bare: ChatRequest | None = None
    """The client's own request, where `chat` offers the recall tool beside it."""
    erasures: int = 0
    """How often anything had been erased when it came."""

    @property
    def rebuilt(self) -> bool:
        """Whether the array holds stored messages that the client did not send."""
        return len(self.situation.leading) + len(self.situation.reconciled.history) > len(self.chat.messages)


def is_erased(state: State, prepared: Prepared) -> Callable[[], bool]:
    """Tells whether this process has erased the session since the request came; of another's, the store tells where it had the session."""
    key, erasures = prepared.caller.key, prepared.erasures
    return lambda: key is not None and state.eraser.erasures.is_erased_since(key, erasures)


async def prepare(state: State, settings: Settings, chat: ChatRequest, caller: Caller, when_sure: Callable[[], None]) -> Prepared:
    """Look up everything a plan needs for a request; raises StoreUnavailable.

    `when_sure` is called, before anything is counted, if counting takes long and the request will surely go out as it came.
    """
    at, erasures = leading_system(chat.messages), state.eraser.erasures.count
    leading, rest = chat.messages[:at], chat.messages[at:]
    frame = frame_of(chat.model, stream=chat.stream, tools=chat.tools)
    session = await state.store.session(caller.key) if caller.key else None
    session = session and await awake(state, settings, session)
    caller = as_chosen(settings, caller, chat.model, session)
    bare = chat if state.recall.is_offered(chat, caller, session) else None
    chat = recall_tool.offered(chat) if bare else chat
    if caller.key and caller.mode == "append" and state.health.trouble:
        opened = OpenSession(caller.key, state.clock(), recall=bare is not None)
        await state.store.apply([opened])  # an answer that is not kept would be forgotten by all
        state.health.wrote()
    past = state.identities.past(rest)
    reconciled = await _reconciled(state, caller, session, leading, past, frame)
    if reconciled.joined is Joined.THIN:
        past = state.identities.past(reconciled.history)
        if caller.key:
            state.health.depends(caller.key)
        if not leading and session:
            leading = tuple(read(raw) for raw in session.system)
    if state.windows.is_due():
        await state.windows.refresh()
    gauge = await state.gauges.of(settings, caller.policy, caller.target.origin, chat.model)
    decisions = await decisions_for(state, session, reconciled.tips)
    user = user_of(caller, session)
    preload: tuple[Message, ...] = ()
    if user:
        opening = Opening(caller, reconciled.history, gauge.belief.window, chat.max_output, gauge.tokenizer.count, bare is not None)
        preload = await preload_for(state, settings, session, opening)
    added = bare is not None or bool(preload) or (settings.retrieval.kind != "off" and user != "")
    slow = len(chat.body) > counting.THREAD_ABOVE_BYTES and state.counts.takes_long(past, leading, gauge.tokenizer, chat.model)
    if slow and not added and reconciled.joined is not Joined.THIN and _surely_as_it_came(chat, caller.policy, gauge.belief, session, decisions):
        when_sure()
    fixed = await state.counts.fixed(chat.tools, chat.functions, chat.response_format, gauge.tokenizer)
    thin = session if reconciled.joined is Joined.THIN else None
    restore = await restore_for(state, settings, caller.policy, thin) if thin else None
    ask = Ask(chat.model, gauge, caller.policy, leading, chat.max_output, fixed, session, preload, restore)
    situation = await situation_for(state, settings, ask, reconciled, decisions, past)
    return Prepared(chat, caller, session, frame, gauge, fixed, situation, bare, erasures)


def user_of(caller: Caller, session: Session | None) -> str:
    """Whose a session is, also where this request does not say it; "" if nobody's."""
    return caller.user or (session.user if session else "")


def as_chosen(settings: Settings, caller: Caller, model: str, session: Session | None) -> Caller:
    """The caller under the policy that its session's own keys make of its request's."""
    if session is None or not session.overrides:
        return caller
    return structs.replace(caller, policy=policy_for(settings, caller.profile or None, model, session.key, session.overrides))


def _surely_as_it_came(chat: ChatRequest, policy: Policy, belief: WindowBelief, session: Session | None, decisions: Decisions) -> bool:
    """Whether a full history fits by its bytes alone, and nothing was ever decided, forgotten or said that could change it."""
    if chat.has_directives or chat.is_part or acts_when_short(policy) or stopped(policy, chat.messages) or _touched(session, decisions):
        return False
    trigger = budget(policy, belief.window, chat.max_output, 0).trigger
    return len(chat.body) <= trigger and surely_fits(len(chat.body), trigger, has_media=has_media(chat.messages))


def _touched(session: Session | None, decisions: Decisions) -> bool:
    """Whether anything was decided, pinned, forgotten or cleared."""
    return bool(decisions.checkpoints or decisions.pins or (session and (session.forgotten or session.cleared)))


async def decisions_for(state: State, session: Session | None, tips: Sequence[Tip], most_checkpoints: int | None = CHECKPOINTS) -> Decisions:
    """What was decided and kept for a history; nothing without a session."""
    if session is None or not session.has_decisions:
        return NOTHING_DECIDED
    key = session.key
    checkpoints = await state.store.checkpoints(key, tips, most_checkpoints)
    summaries = await state.store.summaries(key, tips)
    return Decisions(checkpoints, summaries, [pin.text for pin in await state.store.pins(key)])


async def stored_situation(state: State, settings: Settings, session: Session, tip: Tip) -> Situation:
    """The situation of a session as it is stored, at one of its tips: what the next request would meet."""
    rows = await state.store.history(session.key, tip)
    reconciled = join_thin([], [stored_message(row) for row in rows], [row.tip for row in rows], retried=False)
    leading = tuple(read(raw) for raw in session.system)
    policy = policy_for(settings, session.profile or None, session.model, session.key, session.overrides)
    gauge = await state.gauges.of(settings, policy, target_for(settings, session.model).origin, session.model)
    preload, restore = await stored_preload(state, session), await state.store.carryover.restore(session.key)
    ask = Ask(session.model, gauge, policy, leading, None, session.fixed_tokens, session, preload, restore)
    return await situation_for(state, settings, ask, reconciled, await decisions_for(state, session, reconciled.tips, None))


async def situation_for(
    state: State, settings: Settings, ask: Ask, reconciled: Reconciled, decisions: Decisions, past: Past | None = None
) -> Situation:
    """Count and budget a reconciled history; `past` is what is known of it, where that was looked up before."""
    tokenizer, factor, window, now = ask.gauge.tokenizer, ask.gauge.factor, ask.gauge.belief.window, state.clock()
    past = past or state.identities.past(reconciled.history)
    await state.counts.prime(past, ask.leading, tokenizer, ask.model)
    count = state.counts.counter(tokenizer, ask.model, factor)
    fixed = math.ceil(ask.fixed_tokens * factor) + sum(map(count, ask.leading))
    room = budget(ask.policy, window, ask.max_output, fixed)
    preload = ask.preload if ask.preload and fits_beside(sum(map(count, ask.preload)), room.prompt_tokens) else ()
    gone = cleared(reconciled.history, reconciled.tips, ask.session.cleared) if ask.session and ask.session.cleared else NO_TIPS
    restored, variant = left_behind(reconciled.history, reconciled.tips, ask.restore), variant_of(ask.model, ask.policy)
    return Situation(
        leading=ask.leading,
        preload=preload,
        reconciled=reconciled,
        counts=state.counts.of(past, tokenizer, ask.model, factor),
        budget=budget(ask.policy, window, ask.max_output, fixed + sum(map(count, preload))) if preload else room,
        policy=ask.policy,
        variant=variant,
        count=count,
        count_text=tokenizer.count,
        now=now,
        since=ask.session.created if ask.session else now,
        checkpoints=decisions.checkpoints,
        summaries=[one for one in decisions.summaries if one.tip not in gone | restored],
        pins=decisions.pins,
        memo=state.readings,
        forgotten=ask.session.forgotten if ask.session else NO_TIPS,
        cleared=gone,
        restored=restored,
        summarizer=settings.summarizer.manner,
        summary_max_tokens=settings.summarizer.max_tokens,
        idle_s=now - ask.session.last_used if ask.session else 0.0,
        foreseen=state.foresight.of(ask.session.key, variant) if ask.session else None,
    )


async def _reconciled(state: State, caller: Caller, session: Session | None, leading: Sequence[Message], past: Past, frame: str) -> Reconciled:
    rest, tips = past.messages, past.tips
    if caller.key is None or (session is None and caller.mode == "auto"):
        return join_full(rest, tips, 0)
    same_system = not leading or (session is not None and tuple(m.raw for m in leading) == session.system)
    if may_be_thin(session, rest, mode=caller.mode, named=caller.named, frame=frame, same_system=same_system):
        joined = await _thin(state, caller, session, rest, tips)
        if joined is not None:
            return joined
    return join_full(rest, tips, await _known(state, session, tips) if session else 0)


async def _known(state: State, session: Session, tips: Sequence[Tip]) -> int:
    """How many of a history's messages are stored: where nothing was stored behind the one that the session stands at, that is told at once."""
    if session.is_leaf and session.tip in tips[-LOOKED_BACK:]:
        return tips.index(session.tip) + 1
    return await state.store.known(session.key, tips)


async def _thin(state: State, caller: Caller, session: Session | None, rest: Sequence[Message], tips: Sequence[Tip]) -> Reconciled | None:
    """The request joined to what is stored; None where mode `auto` finds that it is a full history after all."""
    assert caller.key is not None
    if session is None:
        return join_thin(rest, [], [], retried=False)
    inferred = caller.mode == "auto"
    if inferred and session.manner != "thin" and await state.store.known(caller.key, tips[:1]):
        return None
    rows = await state.store.history(caller.key, session.tip)
    stored = [stored_message(row) for row in rows]
    if inferred and not answers_open_calls(rest, stored):
        return None
    return join_thin(rest, stored, [row.tip for row in rows], retried=caller.retried)


def stored_message(row: StoredMessage) -> Message:
    """A row as a message; of an erased one only its role is left."""
    return row.message
