"""One answer out of the model's rounds with the recall tool: the client sees nothing of its calls, streamed or not.

A plain answer is looked at as a whole. A stream is looked at while it goes on to the client: until it calls the tool nothing is held
back but a bare role, and the streams of all rounds are one to the client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from aiohttp import web
from msgspec import structs

from ctxproxy.config.schema import Settings
from ctxproxy.core import jsontext, recall_tool
from ctxproxy.core.codings import decoder
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.recall_stream import RecallFilter, Shown
from ctxproxy.core.reply import reply_from_body
from ctxproxy.errors import CtxproxyError, UpstreamUnreachable
from ctxproxy.ports import Headers, Response
from ctxproxy.proxy.attempt import Refused, Whole, examine, plain_body
from ctxproxy.proxy.prepare import Prepared
from ctxproxy.proxy.recall_rounds import Rounds
from ctxproxy.proxy.rescue import Got
from ctxproxy.proxy.state import State
from ctxproxy.proxy.streams import Stream, header
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.proxy.usage_shown import DECODED_BYTES, OF_OTHER_BYTES

log = logging.getLogger("ctxproxy")
OF_THE_OLD_BODY = frozenset({"content-length", *(name.lower() for name in OF_OTHER_BYTES)})
BROKEN_OFF = "the upstream did not go on with its answer after a call of the recall tool"


async def recalled(state: State, request: web.Request, settings: Settings, prepared: Prepared, got: Got) -> Got:
    """What came of a request, up to the first part of its answer that may be shown; as it is where the tool was not offered.

    Raises UpstreamUnreachable and UpstreamTimeout.
    """
    if prepared.bare is None:
        return got
    rounds = Rounds(state, request, settings, prepared, prepared.bare, got)
    result = await _shown(state.tasks, rounds, await rounds.unless_refused(got.result))
    marks = [mark for mark in (("recall", rounds.use.answered), ("recall_refused", int(rounds.use.refused))) if mark[1]]
    return structs.replace(got, result=result, marks=(*got.marks, *marks), recall=rounds.use)


async def _shown(tasks: Tasks, rounds: Rounds, result: Stream | Whole | Refused) -> Stream | Whole | Refused:
    """The answer as the client may see it."""
    said: list[str] = []
    while True:
        match result:
            case Refused() | Stream(decoder=None):
                return result
            case Stream():
                merged = _Merged(tasks, rounds, result)
                begun = await examine(merged, tasks, rounds.most_bytes)
                if merged.instead is None:
                    return begun
                result = merged.instead
            case Whole():
                message = _asking(rounds, result, begun=bool(said))
                if message is None:
                    return _plain(result, said, rounds.most_bytes)
                await result.response.close()
                said += [text] if (text := text_of(message)) else []
                result = await rounds.next(message, shown=False)


def _asking(rounds: Rounds, whole: Whole, *, begun: bool) -> Message | None:
    """The message of a plain answer that another round follows; None where none does."""
    choice = whole.reply.choices[0] if whole.reply and whole.reply.choices else None
    if choice is None or choice.finish_reason in recall_tool.FINAL or not recall_tool.asks_only(choice.message):
        return None
    return choice.message if rounds.may_recall or (rounds.may_restart and not begun) else None


def _plain(whole: Whole, said: Sequence[str], most_bytes: int) -> Whole:
    """A plain answer without calls of ours, behind what was said in earlier rounds; as it came where that changes nothing."""
    if whole.reply is None or not whole.reply.choices:
        return whole
    body = plain_body(whole.response, whole.body, most_bytes)
    shown = recall_tool.plain_answer(body, said)
    return whole if shown is body else Whole(_Changed(whole.response), shown, reply_from_body(shown))


class _Changed:
    """A response whose body was made anew: its headers but for those that tell of the old one's bytes."""

    def __init__(self, original: Response) -> None:
        self._original = original
        self.status = original.status
        self.reason = original.reason
        self.headers = _about_any_body(original.headers)

    def chunks(self) -> AsyncIterator[bytes]:
        return self._original.chunks()

    async def close(self) -> None:
        await self._original.close()


class _Merged:
    """The streams of all rounds as one response, decoded; between two of them the model is asked again."""

    def __init__(self, tasks: Tasks, rounds: Rounds, first: Stream) -> None:
        self.instead: Whole | Refused | None = None
        """What a round gave that is no stream, as long as nothing was shown: then there are no chunks."""
        self._tasks = tasks
        self._rounds = rounds
        self._stream = first
        self._shown = Shown()
        self._asking: asyncio.Task[Stream | Whole | Refused | CtxproxyError] | None = None

    @property
    def status(self) -> int:
        return self._stream.response.status

    @property
    def reason(self) -> str:
        return self._stream.response.reason

    @property
    def headers(self) -> Headers:
        """Those of the round that is shown first."""
        return _about_any_body(self._stream.response.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """What to show of the answer; raises as a response's chunks do, and UpstreamUnreachable where a later round is refused."""
        while True:
            one = RecallFilter(self._shown, may_recall=self._rounds.may_recall, may_restart=self._rounds.may_restart)
            async for data in self._filtered(one):
                yield data
            if not one.is_due:
                return
            await self._stream.response.close()
            following = await self._asked(one.message())
            if isinstance(following, Stream) and following.decoder is not None:
                self._stream = following
                continue
            await following.response.close()
            if not self._shown.began and not isinstance(following, Stream):
                self.instead = following
                return
            yield _error_event(following)
            raise UpstreamUnreachable(BROKEN_OFF)

    async def close(self) -> None:
        """Give up the stream that is read, and the call that is under way."""
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()
            self._tasks.start(_closed(asking), "drop a recall round")
        await self._stream.response.close()

    async def _filtered(self, one: RecallFilter) -> AsyncIterator[bytes]:
        """One round's stream without calls of ours; after a fault of ours, as it comes."""
        broken = False
        async for data in _decoded(self._stream):
            shown = data if broken else None
            if shown is None:
                shown, broken = _fed(one, data)
            if shown:
                yield shown
        if not broken and (last := one.finish()):
            yield last

    async def _asked(self, message: Message) -> Stream | Whole | Refused:
        """The next round's answer; `close` may cancel it."""
        asking: asyncio.Task[Stream | Whole | Refused | CtxproxyError]
        asking = self._asking = self._tasks.start(_next(self._rounds, message, shown=self._shown.began), "recall round")
        await asyncio.wait([asking])
        self._asking = None
        if asking.cancelled():
            raise UpstreamUnreachable(BROKEN_OFF)
        result = asking.result()
        if isinstance(result, CtxproxyError):
            raise result
        return result


def _fed(one: RecallFilter, data: bytes) -> tuple[bytes, bool]:
    """What to show, and whether the filter has failed."""
    try:
        return one.feed(data), False
    except Exception as error:
        log.exception("an answer could not be read along, it is relayed all the same: %s", type(error).__name__)
        return one.give_up(), True


async def _decoded(stream: Stream) -> AsyncIterator[bytes]:
    """A stream's chunks from the first one on, without their content coding."""
    undo = decoder(header(stream.response, "Content-Encoding"), DECODED_BYTES)
    for chunk in stream.held:
        yield undo.feed(chunk)
    async for chunk in stream.pump.rest():
        yield undo.feed(chunk)


async def _next(rounds: Rounds, message: Message, *, shown: bool) -> Stream | Whole | Refused | CtxproxyError:
    try:
        return await rounds.next(message, shown=shown)
    except CtxproxyError as error:
        return error


async def _closed(asking: asyncio.Task[Stream | Whole | Refused | CtxproxyError]) -> None:
    await asyncio.wait([asking])
    if not asking.cancelled() and not isinstance(got := asking.result(), CtxproxyError):
        await got.response.close()


def _about_any_body(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in OF_THE_OLD_BODY]


def _error_event(result: Stream | Whole | Refused) -> bytes:
    """The error of a round that cannot be told with a status any more, as an event: the upstream's own where it has OpenAI's shape."""
    value: object = None
    if isinstance(result, Refused):
        try:
            value = jsontext.decode(plain_body(result.response, result.body))
        except ValueError:
            value = None
    told = value if isinstance(value, dict) and value.get("error") else UpstreamUnreachable(BROKEN_OFF).as_body()
    return b"data: " + jsontext.encode(told) + b"\n\n"
