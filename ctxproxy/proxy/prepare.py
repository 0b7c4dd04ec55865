"""From a parsed request to the situation that a plan is made for: load, reconcile, count, budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ctxproxy.config.schema import Settings
from ctxproxy.core.budget import budget
from ctxproxy.core.checkpoints import variant_of
from ctxproxy.core.messages import ROOT, Message, Tip, chain, identity, leading_system, read
from ctxproxy.core.plan import Situation
from ctxproxy.core.records import Checkpoint, Session, StoredMessage, Summary, WindowBelief
from ctxproxy.core.sessions import Reconciled, answers_open_calls, frame_of, join_full, join_thin, may_be_thin
from ctxproxy.core.tokens import REPLY_PRIMER_TOKENS, fixed_tokens
from ctxproxy.core.wire import ChatRequest
from ctxproxy.ports import Tokenizer
from ctxproxy.proxy.identify import Caller
from ctxproxy.proxy.state import State


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with all that was looked up for it."""

    chat: ChatRequest
    caller: Caller
    session: Session | None
    frame: str
    belief: WindowBelief
    fixed_tokens: int
    """Tools and response format, without the leading messages."""
    situation: Situation

    @property
    def rebuilt(self) -> bool:
        """Whether the array holds stored messages that the client did not send."""
        return len(self.situation.reconciled.history) + leading_system(self.chat.messages) > len(self.chat.messages)


async def prepare(state: State, settings: Settings, chat: ChatRequest, caller: Caller) -> Prepared:
    """Look up everything a plan needs; raises StoreUnavailable."""
    at = leading_system(chat.messages)
    leading, rest = chat.messages[:at], chat.messages[at:]
    frame = frame_of(chat.model, stream=chat.stream, tools=chat.tools)
    session = await state.store.session(caller.key) if caller.key else None
    reconciled = await _reconciled(state, caller, session, leading, rest, frame)
    if not leading and session and len(reconciled.history) > len(rest):
        leading = tuple(read(raw) for raw in session.system)
    tokenizer = await tokenizer_for(state, settings, chat.model)
    belief = state.windows.belief(caller.target.origin, chat.model, settings.models)
    factor = state.windows.factor(caller.target.origin, chat.model, tokenizer, explicit=caller.policy.max_tokens != "auto")
    await state.counts.prime([*leading, *reconciled.history], tokenizer, chat.model)
    count = state.counts.counter(tokenizer, chat.model, factor)
    fixed = fixed_tokens(chat.tools, chat.functions, chat.response_format, tokenizer.count)
    checkpoints, summaries, pins = await _decisions(state, caller, reconciled.tips)
    situation = Situation(
        leading=leading,
        reconciled=reconciled,
        counts=tuple(map(count, reconciled.history)),
        budget=budget(caller.policy, belief.window, chat.max_output, fixed + sum(map(count, leading)) + REPLY_PRIMER_TOKENS),
        policy=caller.policy,
        variant=variant_of(chat.model, caller.policy),
        count=count,
        count_text=tokenizer.count,
        now=state.clock(),
        checkpoints=checkpoints,
        summaries=summaries,
        pins=pins,
        forgotten=session.forgotten if session else frozenset(),
        summarizer=settings.summarizer.kind,
        summary_max_tokens=settings.summarizer.max_tokens,
    )
    return Prepared(chat, caller, session, frame, belief, fixed, situation)


async def tokenizer_for(state: State, settings: Settings, model: str) -> Tokenizer:
    """The model's tokenizer; loading its table takes most of a second the first time, so that happens in a thread."""
    return await asyncio.to_thread(state.tokenizer, model, settings) if not state.loaded(model, settings) else state.tokenizer(model, settings)


async def _reconciled(
    state: State, caller: Caller, session: Session | None, leading: Sequence[Message], rest: Sequence[Message], frame: str
) -> Reconciled:
    tips = chain(ROOT, [identity(m) for m in rest])
    if caller.key is None:
        return join_full(rest, tips, 0)
    same_system = not leading or (session is not None and tuple(m.raw for m in leading) == session.system)
    if may_be_thin(session, rest, mode=caller.mode, named=caller.named, frame=frame, same_system=same_system):
        joined = await _thin(state, caller, session, rest, tips)
        if joined is not None:
            return joined
    return join_full(rest, tips, await state.store.known(caller.key, tips) if session else 0)


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
    return read(row.raw) if row.raw else Message(b"", {"role": row.role})


async def _decisions(state: State, caller: Caller, tips: Sequence[Tip]) -> tuple[list[Checkpoint], list[Summary], list[str]]:
    if caller.key is None:
        return [], [], []
    checkpoints = await state.store.checkpoints(caller.key, tips)
    summaries = await state.store.summaries(caller.key, tips)
    return checkpoints, summaries, [pin.text for pin in await state.store.pins(caller.key)]
