"""One chat completion, from the client's bytes to its answer: the only file that orders the I/O between the three decisions.

plan (what to send) → send → tighten (after an overflow, bounded) → relay → settle (what to keep).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from typing import TypeAlias

from aiohttp import web

from ctxproxy.config.schema import Settings
from ctxproxy.core import wire
from ctxproxy.core.records import WindowBelief
from ctxproxy.core.usage_report import Logical
from ctxproxy.core.wire import ChatRequest
from ctxproxy.errors import CtxproxyError, StoreUnavailable, WireError
from ctxproxy.ports import Call
from ctxproxy.proxy import arm_figures, passthrough
from ctxproxy.proxy.attempt import Refused, Whole, examine
from ctxproxy.proxy.commands import answered
from ctxproxy.proxy.early import EarlyCall
from ctxproxy.proxy.final_error import final_answer
from ctxproxy.proxy.identify import Target, bypassed, credentials_of, identify, target_for
from ctxproxy.proxy.keeping import Keeping
from ctxproxy.proxy.listing import ask_for_models
from ctxproxy.proxy.middleware import NOTE
from ctxproxy.proxy.outgoing import call_for
from ctxproxy.proxy.prepare import Prepared, prepare
from ctxproxy.proxy.reading import decoded, read_once, take_in
from ctxproxy.proxy.recall import recalled
from ctxproxy.proxy.rescue import Got, Rescue
from ctxproxy.proxy.state import State
from ctxproxy.proxy.streams import Stream
from ctxproxy.proxy.tee import Settle, relay_stream, relay_whole
from ctxproxy.proxy.usage_shown import size_to_show

log = logging.getLogger("ctxproxy")
MEGABYTE = 1_048_576
Outcome: TypeAlias = web.StreamResponse | CtxproxyError | ConnectionError


async def chat_completions(state: State, request: web.Request) -> web.StreamResponse:
    """Serve `POST /v1/chat/completions`."""
    settings = state.settings()
    most_bytes = int(settings.listen.max_body_mb * MEGABYTE)
    encoded = await take_in(request, most_bytes)
    if bypassed(request):
        return await _bypassing(state, request, encoded, most_bytes)
    try:
        name = request.headers.get(settings.sessions.header, "")
        said = await state.bodies.read(name, decoded(request, encoded, most_bytes), commands=settings.commands.enabled)
    except WireError:
        return await passthrough.forward(state, request, encoded)
    except CtxproxyError:
        raise
    except Exception as error:
        log.exception("reading a request failed, it goes out as it came: %s", type(error).__name__)
        state.metrics.failed_open.inc()
        return await passthrough.forward(state, request, encoded)
    if said.command is not None:
        return await answered(state, request, settings, said.chat, said.command)
    serving = _served(state, request, settings, said.chat, encoded)
    del said, encoded  # here and below: an answer may take minutes, and does not need what was asked as it came
    if settings.upstream.on_disconnect == "cancel":
        return await serving
    outcome: Outcome = await asyncio.shield(state.tasks.start(_outcome(serving), "answer"))  # goes on when the client leaves
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def _bypassing(state: State, request: web.Request, encoded: bytes, most_bytes: int) -> web.StreamResponse:
    """Forward a request as it is, but for `x_context`, to the upstream of its model; what cannot be read, as it is."""
    try:
        chat = read_once(request, encoded, most_bytes)
    except CtxproxyError:
        return await passthrough.forward(state, request, encoded)
    body = wire.render(chat)
    changed = body is not chat.body
    return await passthrough.forward(state, request, body if changed else encoded, model=chat.model, reencoded=changed)


async def _outcome(serving: Awaitable[web.StreamResponse]) -> Outcome:
    """An answer, or the error that is no fault of ours as a value."""
    try:
        return await serving
    except (CtxproxyError, ConnectionError) as error:
        return error


async def _served(state: State, request: web.Request, settings: Settings, chat: ChatRequest, encoded: bytes) -> web.StreamResponse:
    asking = _got(state, request, settings, chat, encoded)
    del chat, encoded
    got = await asking
    del asking
    return got if isinstance(got, web.StreamResponse) else await _answered(state, request, settings, *got)


async def _got(
    state: State, request: web.Request, settings: Settings, chat: ChatRequest, encoded: bytes
) -> tuple[Prepared, Got, Rescue] | web.StreamResponse:
    """What came of a request, to be relayed and kept; the answer itself where it went out as it came."""
    target = target_for(settings, chat.model)
    early = EarlyCall(state.tasks, lambda: state.upstream(target.base_url).send(_as_it_came(request, settings, chat, target, encoded)))
    try:
        return await _planned(state, request, settings, chat, target, early)
    finally:
        early.drop()


def _as_it_came(request: web.Request, settings: Settings, chat: ChatRequest, target: Target, encoded: bytes) -> Call:
    """The call with the client's own bytes, but for `x_context`."""
    body = wire.render(chat)
    changed = body is not chat.body
    return call_for(request, target, settings, body if changed else encoded, reencoded=changed)


async def _planned(
    state: State, request: web.Request, settings: Settings, chat: ChatRequest, target: Target, early: EarlyCall
) -> tuple[Prepared, Got, Rescue] | web.StreamResponse:
    began, thin = time.monotonic(), False
    try:
        caller = identify(request, chat, settings, state.secret)
        thin = caller.mode == "append" or (caller.mode == "auto" and state.health.is_dependent(caller.key))
        prepared = await prepare(state, settings, chat, caller, early.begin)
        rescue = Rescue(state, request, settings, prepared)
        if state.windows.wants_listing(caller.target.origin, prepared.gauge.belief):
            state.tasks.start(ask_for_models(state, settings, caller.target, credentials_of(request, caller.target)), "list of models")
        ready = await rescue.first_plan()
    except StoreUnavailable as error:
        if thin:
            raise
        log.warning("the store does not answer, so nothing is remembered of this request: %s", error.message)
        state.metrics.store_errors.inc()
        return await _untouched(state, request, settings, early, "store_unavailable")
    except CtxproxyError:
        raise
    except Exception as error:
        log.exception("planning failed, the request goes out as it came: %s", type(error).__name__)
        state.metrics.failed_open.inc()
        return await _untouched(state, request, settings, early, "failed_open")
    state.metrics.planning.observe(time.monotonic() - began)
    try:
        got = await recalled(state, request, settings, prepared, await rescue.answer(ready, early))
    except CtxproxyError:
        state.metrics.requests.labels("unanswered").inc()
        arm_figures.count_unanswered(state.metrics, caller.arm)
        raise
    return (rescue.let_go() if isinstance(got.result, Stream) else prepared), got, rescue


async def _answered(state: State, request: web.Request, settings: Settings, prepared: Prepared, got: Got, rescue: Rescue) -> web.StreamResponse:
    """Relay what came, and keep it, however that ends."""
    result = final_answer(got, settings.recovery.final_error)
    keeping = Keeping(state, settings, prepared, got, lambda: rescue.asked)
    _note(state, request, prepared, got)
    drained = False
    try:
        ours = context_headers(settings.sessions.header, prepared, got)
        return await _relayed(request, result, ours, keeping.settle, size_to_show(prepared, got))
    except (ConnectionResetError, asyncio.CancelledError):
        if isinstance(result, Stream) and settings.upstream.on_disconnect == "drain":
            drained = True
            state.tasks.start(keeping.drain(result), "drain")
        raise
    finally:
        if not drained:
            state.tasks.begin(_ended(keeping, result), "end of request")


async def _ended(keeping: Keeping, result: Stream | Whole | Refused) -> None:
    await result.response.close()
    await keeping.settle(False)


async def _relayed(
    request: web.Request, result: Stream | Whole | Refused, ours: Sequence[tuple[str, str]], settle: Settle, size: Logical | None = None
) -> web.StreamResponse:
    if isinstance(result, Stream):
        return await relay_stream(request, result, ours, settle, size)
    return await relay_whole(request, result, ours, settle, size)


def context_headers(session_header: str, prepared: Prepared, got: Got) -> list[tuple[str, str]]:
    """The `X-Context-…` headers of an answer (INTERFACE.md §2)."""
    key = prepared.caller.key
    return [
        *([(session_header, key.name)] if key else []),
        ("X-Context-Tokens-In", str(got.plan.tokens_in)),
        ("X-Context-Tokens-Sent", str(got.plan.tokens_sent)),
        ("X-Context-Budget", str(got.plan.budget.prompt_tokens)),
        ("X-Context-Actions", _actions_shown(got)),
        ("X-Context-Attempts", str(got.calls)),
        ("X-Context-Window", window_shown(prepared.gauge.belief)),
        *([("X-Context-Arm", prepared.caller.arm)] if prepared.caller.arm else []),
    ]


def window_shown(belief: WindowBelief) -> str:
    """`8192 (learned)`."""
    return f"{belief.window} ({belief.source})"


def _actions_shown(got: Got) -> str:
    """`compact_tool_results=3,summarize=1`."""
    plan = got.plan
    if not (plan.actions or plan.changed or plan.failed or got.marks):
        return "none"
    totals: dict[str, int] = {}
    replayed = [("replay", 1)] if got.plan.replays else []
    for name, count in (*got.plan.actions, *replayed, *got.marks, *((f"failed_{name}", 1) for name in got.plan.failed)):
        totals[name] = totals.get(name, 0) + count
    return ",".join(f"{name}={count}" for name, count in totals.items()) or "none"


def _note(state: State, request: web.Request, prepared: Prepared, got: Got) -> None:
    """Count the request, and leave its figures for the log line."""
    plan, metrics = got.plan, state.metrics
    (metrics.requests.labels("refused") if isinstance(got.result, Refused) else metrics.answered).inc()
    arm_figures.count_answer(metrics, prepared.caller.arm, got)
    metrics.tokens_in.inc(plan.tokens_in)
    metrics.tokens_sent.inc(plan.tokens_sent)
    for name, edits in plan.actions:
        metrics.stage_edits.labels(name).inc(edits)
    if plan.compacts:
        metrics.compactions.inc()
        metrics.last_gain.set(sum(saved for _, saved in plan.saved))
    session = prepared.caller.key.id if prepared.caller.key else "-"
    request[NOTE] = (
        f" session={session} tokens={plan.tokens_in}>{plan.tokens_sent} budget={plan.budget.prompt_tokens}"
        f" actions={_actions_shown(got)} calls={got.calls}"
    )


async def _untouched(state: State, request: web.Request, settings: Settings, early: EarlyCall, action: str) -> web.StreamResponse:
    """Forward a request without planning and without a trace, and say so."""
    response = await early.response()
    try:
        result = await examine(response, state.tasks, int(settings.listen.max_body_mb * MEGABYTE))
        return await _relayed(request, result, [("X-Context-Actions", action)], _nothing_to_keep)
    finally:
        await response.close()


async def _nothing_to_keep(_: bool) -> None:
    return
