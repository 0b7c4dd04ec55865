"""Asks the model again with the originals that it wanted: what a round adds to the prompt, and what is tried where that is refused."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Sequence

from aiohttp import web

from ctxproxy.config.schema import Settings
from ctxproxy.core import recall_tool, wire
from ctxproxy.core.messages import Message
from ctxproxy.core.recall_tool import RecallCall, Recalled
from ctxproxy.core.situation import gone_tips
from ctxproxy.core.wire import ChatRequest
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.attempt import Refused, Whole, examine, plain_body
from ctxproxy.proxy.counting import THREAD_ABOVE_BYTES
from ctxproxy.proxy.outgoing import call_for
from ctxproxy.proxy.prepare import Prepared, stored_message
from ctxproxy.proxy.recall_offer import RecallUse
from ctxproxy.proxy.rescue import Got
from ctxproxy.proxy.state import State
from ctxproxy.proxy.streams import Stream

log = logging.getLogger("ctxproxy")
MEGABYTE = 1_048_576
OURS_TO_MEND = frozenset({400, 404, 413, 422, 500, 501})
"""Statuses under which servers refuse a tool, or what a round has added (llama.cpp's answers 500 where a chat template fails)."""
NAMES_TOOLS = re.compile(rb"(?i)tool|function")
"""In the error of each server that takes none: "does not support tools", "requires --enable-auto-tool-choice", "tools param requires --jinja"."""
FRAME_TOKENS = 8
"""A result's own frame, beside its text."""


class Rounds:
    """The calls to the upstream beside the first one, for one request."""

    def __init__(self, state: State, request: web.Request, settings: Settings, prepared: Prepared, bare: ChatRequest, got: Got) -> None:
        self.use = RecallUse()
        self.most_bytes = int(settings.listen.max_body_mb * MEGABYTE)
        self._state = state
        self._request = request
        self._settings = settings
        self._prepared = prepared
        self._bare = bare
        self._got = got
        self._added: tuple[Message, ...] = ()
        self._left = recall_tool.MAX_ROUNDS
        self._as_asked = False

    @property
    def may_recall(self) -> bool:
        """Another round may answer the model."""
        return self._left > 0

    @property
    def may_restart(self) -> bool:
        """The request may still be sent as the client made it, if nothing is shown yet."""
        return not self._as_asked

    async def unless_refused(self, first: Stream | Whole | Refused) -> Stream | Whole | Refused:
        """The first answer; where the upstream does not take the tool, its answer to the request as the client made it."""
        if not isinstance(first, Refused) or first.verdict.kind == "overflow" or first.response.status not in OURS_TO_MEND:
            return first
        if not NAMES_TOOLS.search(plain_body(first.response, first.body, self.most_bytes)):
            return first
        await first.response.close()
        result = await self._send_as_asked()
        if not isinstance(result, Refused):
            self.use.refused = True
            self._state.recall.refused(self._bare, self._prepared.caller.target.origin)
        return result

    async def next(self, message: Message, *, shown: bool) -> Stream | Whole | Refused:
        """The answer to the prompt with what the model asked for in `message`; with `shown`, the client has seen something already.

        Raises UpstreamUnreachable and UpstreamTimeout.
        """
        if not self.may_recall:
            return await self._send_as_asked()
        self._left -= 1
        before, (asking, calls) = self._added, recall_tool.asked(message)
        results = await self._results(asking, calls)
        result = await self._send_added((*before, *recall_tool.answered(asking, calls, results)))
        if isinstance(result, Refused) and result.verdict.shrink_helps:
            await result.response.close()
            results = [recall_tool.no_room(call) for call in calls]
            result = await self._send_added((*before, *recall_tool.answered(asking, calls, results)))
        self._note(results)
        if isinstance(result, Refused) and (result.verdict.shrink_helps or result.response.status in OURS_TO_MEND) and not shown:
            await result.response.close()
            return await self._send_as_asked()
        return result

    def _note(self, results: Sequence[Recalled]) -> None:
        self.use.answered += len(results)
        for one in results:
            self._state.metrics.recalls.labels(one.found).inc()

    async def _send_added(self, added: tuple[Message, ...]) -> Stream | Whole | Refused:
        """Ask with what the rounds have added; after the last one without the tool, so that the model has to answer or to call another."""
        self._added = added
        messages, changes = (*self._got.plan.messages, *added), self._got.changes
        if self.may_recall:
            return await self._send(wire.render(self._prepared.chat, messages, changes))
        if recall_tool.has_tools(self._bare):
            return await self._send(wire.render(self._bare, messages, changes))
        return await self._send(wire.render(self._prepared.chat, messages, {**changes, "tool_choice": b'"none"'}))

    async def _send_as_asked(self) -> Stream | Whole | Refused:
        """Ask as if there were no tool of ours."""
        self._left, self._as_asked = 0, True
        edited = self._prepared.rebuilt or self._got.plan.changed
        tools = recall_tool.has_tools(self._bare)
        changes = {key: value for key, value in self._got.changes.items() if tools or key != "tool_choice"}  # which needs a tool to choose from
        return await self._send(wire.render(self._bare, self._got.plan.messages if edited else None, changes))

    async def _send(self, body: bytes) -> Stream | Whole | Refused:
        self.use.calls += 1
        target = self._prepared.caller.target
        call = call_for(self._request, target, self._settings, body, reencoded=True, plain=True)
        response = await self._state.upstream(target.base_url).send(call)
        self._state.metrics.upstream_calls.labels("recall", str(response.status)).inc()
        return await examine(response, self._state.tasks, self.most_bytes)

    async def _results(self, asking: Message, calls: Sequence[RecallCall]) -> list[Recalled]:
        """The result of each call; a fault of ours costs the original, not the answer."""
        try:
            originals = [await self._original(call.marker) for call in calls]
            if sum(len(one.raw) for one in originals if one) > THREAD_ABOVE_BYTES:
                return await asyncio.to_thread(self._worded, asking, calls, originals)
            return self._worded(asking, calls, originals)
        except Exception as error:
            log.exception("an original could not be fetched for the model: %s", type(error).__name__)
            self._state.metrics.failed_open.inc()
            return [recall_tool.unreadable(call) for call in calls]

    def _worded(self, asking: Message, calls: Sequence[RecallCall], originals: Sequence[Message | None]) -> list[Recalled]:
        """The results, so long that the prompt stays within its budget."""
        plan, count = self._got.plan, self._got.situation.count
        room = plan.budget.prompt_tokens - plan.tokens_sent - sum(map(count, (*self._added, asking)))
        results: list[Recalled] = []
        for call, original in zip(calls, originals, strict=True):
            share = max(room, 0) // (len(calls) - len(results)) - FRAME_TOKENS
            results.append(recall_tool.recalled(call, original, share, self._count_text))
            room -= count(recall_tool.result_message(call, results[-1].text))
        return results

    def _count_text(self, text: str) -> int:
        return math.ceil(self._got.situation.count_text(text) * self._prepared.gauge.factor)

    async def _original(self, marker: str) -> Message | None:
        """The message behind a marker, if it is one of this session's and may still be sent: of the history at hand, else of another branch."""
        if not marker:
            return None
        history, situation = self._got.situation.reconciled, self._got.situation
        here = next((n for n, tip in enumerate(history.tips) if tip.startswith(marker)), None)
        if here is not None:
            known = history.history[here]
            return known if known.raw and history.tips[here] not in gone_tips(situation) else None
        try:
            elsewhere = await self._state.store.locate(marker)
        except StoreUnavailable:
            self._state.metrics.store_errors.inc()
            return None
        found = [one.message for one in elsewhere if one.key == self._prepared.caller.key and one.message.tip not in situation.forgotten]
        return stored_message(found[0]) if found and found[0].raw else None
