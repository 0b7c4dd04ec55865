"""A streamed answer as the client may see it: the events of the model's rounds as one stream, without the calls of the recall tool.

Events that are not concerned keep their exact bytes. What goes: fragments of such calls; the finish, usage and [DONE] of a round
that another one follows; a second role. Until something of an answer is shown, bare roles are held back, so that a round that
fails can still be told with a status. Must not know of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ctxproxy.core import jsontext
from ctxproxy.core.fragments import Call, Calls
from ctxproxy.core.messages import Message
from ctxproxy.core.recall_tool import CALLED, FINAL, NAME, PARAGRAPH, asks_only
from ctxproxy.core.reply import DONE, NO_FINISH, ReplyAssembler
from ctxproxy.core.sse import MAX_EVENT_BYTES, Event, SseReader

BLOCK_END = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)+")
"""Blank lines end an event (WHATWG HTML §9.2.6)."""
LINE_ENDS_BYTES = 4


@dataclass(slots=True)
class Shown:
    """What the client has seen of the answer, over all rounds."""

    began: bool = False
    """Something of an answer: text, a call, reasoning, a finish; a bare role is nothing yet."""
    last_char: str = ""
    """Of the text."""


@dataclass(frozen=True, slots=True)
class _Block:
    """An event with its bytes, and the calls that its fragments belong to."""

    raw: bytes
    event: Event
    chunk: dict[str, Any]
    calls: tuple[tuple[int, Call], ...] = ()
    """By the identity of the fragment's object."""

    def call_of(self, fragment: dict[str, Any]) -> Call | None:
        return next((call for key, call in self.calls if key == id(fragment)), None)

    @property
    def is_open(self) -> bool:
        """Whether it is not known yet whose call it is: a name may come in pieces."""
        return any(NAME.startswith(call.name) and call.name != NAME and not call.has_arguments for _, call in self.calls)


class RecallFilter:
    """One round's stream. `may_recall`: another round may follow; `may_restart`: one may follow as long as nothing is shown."""

    def __init__(self, shown: Shown, *, may_recall: bool, may_restart: bool = False) -> None:
        self.is_due = False
        """The model asks for originals and for nothing else: another round follows, and nothing more of this one is shown."""
        self._shown = shown
        self._goes_on = shown.began
        self._may_recall = may_recall
        self._may_restart = may_restart
        self._blocks = _Blocks()
        self._waiting: list[bytes] = []
        self._out: list[bytes] = []
        self._queue: list[_Block] = []
        self._quiet: list[bytes] = []
        self._calls = Calls()
        self._places: dict[int, int] = {}
        self._ours = self._failed = self._finished = False
        self._assembler = ReplyAssembler()

    def feed(self, data: bytes) -> bytes:
        """What to show now that these bytes of the (decoded) stream have come; raises ValueError if an event is too large to be read."""
        self._waiting += self._blocks.feed(data)
        while self._waiting:
            self._out += self._take(self._waiting[0])
            del self._waiting[0]
        return self._taken()

    def finish(self) -> bytes:
        """What to show at the end of the stream."""
        if last := self._blocks.rest():
            self._out += self._take(last)
        self._out += self._drained(all_of_it=True)
        self._out += self._flushed() if not self.is_due else []
        return self._taken()

    def give_up(self) -> bytes:
        """What has come and was not shown yet, as it came: after a fault of ours."""
        self.is_due = False
        self._out += [*self._flushed(), *(block.raw for block in self._queue), *self._waiting, self._blocks.rest()]
        return self._taken()

    def message(self) -> Message:
        """The whole answer of this round, calls included."""
        return self._assembler.result().choices[0].message

    def _taken(self) -> bytes:
        out, self._out = self._out, []
        return b"".join(out)

    def _take(self, raw: bytes) -> Iterator[bytes]:
        event = _event(raw)
        if event is None:
            yield raw  # a comment, a ping: passes at once
        elif event.data.strip() == DONE:
            yield from self._drained(all_of_it=True)
            self.is_due = self.is_due or (not self._finished and self._ends_in_recall(""))
            yield from [] if self.is_due else [*self._flushed(), raw]
        else:
            self._assembler.feed(event.data, event.name)
            self._queue.append(self._read(raw, event))
            yield from self._drained()

    def _read(self, raw: bytes, event: Event) -> _Block:
        try:
            chunk = jsontext.decode(event.data)
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict):
            return _Block(raw, event, {"error": True} if event.name == "error" else {})
        fragments = [one for choice in _dicts(chunk.get("choices")) for one in _dicts(_delta(choice).get("tool_calls"))]
        return _Block(raw, event, chunk, tuple((id(one), self._calls.feed(one)) for one in fragments))

    def _drained(self, *, all_of_it: bool = False) -> Iterator[bytes]:
        """Show what waits, up to the first call of which it is not known whose it is."""
        while self._queue and (all_of_it or not self._queue[0].is_open):
            yield from self._told(self._queue.pop(0))

    def _told(self, block: _Block) -> Iterator[bytes]:
        if self.is_due:
            return
        self._ours = self._ours or any(call.name == NAME for _, call in block.calls)
        self._failed = self._failed or bool(block.chunk.get("error")) or block.event.name == "error"
        finish = next((reason for choice in _dicts(block.chunk.get("choices")) if (reason := _finish(choice))), "")
        self._finished = self._finished or bool(finish)
        self.is_due = bool(finish) and self._ends_in_recall(finish)
        chunk = self._hidden(block, finish)
        raw = block.raw if chunk is block.chunk else _encoded(block.event, chunk)
        if _says_something(chunk):
            yield from self._flushed()
            yield from self._parted(chunk)
            self._shown.began = True
            yield raw
        elif not self._shown.began:
            self._quiet += [raw] if chunk is block.chunk or _has_role(chunk) else []
        elif chunk is block.chunk and not self._goes_on:
            yield raw

    def _flushed(self) -> Iterator[bytes]:
        yield from self._quiet
        self._quiet = []

    def _ends_in_recall(self, finish: str) -> bool:
        allowed = self._may_recall or (self._may_restart and not self._shown.began)
        return allowed and self._ours and not self._failed and finish not in FINAL and asks_only(self.message())

    def _hidden(self, block: _Block, finish: str) -> dict[str, Any]:
        """A chunk without fragments of our calls; without its finish where another round follows; the chunk itself where that changes nothing."""
        given = _dicts(block.chunk.get("choices"))
        choices = [self._hidden_choice(block, choice) for choice in given]
        if finish and self.is_due:
            kept = {key: value for key, value in block.chunk.items() if key != "usage"}
            return {**kept, "choices": [{**choice, "finish_reason": None} for choice in choices]}
        if finish in CALLED and self._ours and not self._places:
            choices = [{**choice, "finish_reason": "stop"} for choice in choices]
        return block.chunk if choices == given else {**block.chunk, "choices": choices}

    def _hidden_choice(self, block: _Block, choice: dict[str, Any]) -> dict[str, Any]:
        delta = _delta(choice)
        if not block.calls or not delta.get("tool_calls"):
            return choice
        kept = [self._numbered(one, call) for one in _dicts(delta["tool_calls"]) if (call := block.call_of(one)) and call.name != NAME]
        rest = {key: value for key, value in delta.items() if key != "tool_calls"}
        return {**choice, _delta_key(choice): {**rest, "tool_calls": kept} if kept else rest}

    def _numbered(self, fragment: dict[str, Any], call: Call) -> dict[str, Any]:
        """A fragment of a client's call with the index that it has among the client's: a gap would be an empty call to some clients."""
        place = self._places.setdefault(id(call), len(self._places))
        return {**fragment, "index": place} if self._ours and type(fragment.get("index")) is int else fragment

    def _parted(self, chunk: dict[str, Any]) -> Iterator[bytes]:
        """A paragraph's end before the first text of a round that goes on behind text."""
        texts = [content for choice in _dicts(chunk.get("choices")) if isinstance(content := _delta(choice).get("content"), str) and content]
        if not texts:
            return
        if self._goes_on and self._shown.last_char and not self._shown.last_char.isspace():
            delta = {"index": 0, "delta": {"content": PARAGRAPH}, "finish_reason": None}
            yield _encoded(Event(), {**{key: value for key, value in chunk.items() if key != "usage"}, "choices": [delta]})
        self._goes_on = False
        self._shown.last_char = texts[-1][-1]


class _Blocks:
    """Cuts a stream into its events, each with its exact bytes and the blank lines behind it."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The events that these bytes complete; raises ValueError if one is larger than any reader of ours takes."""
        self._held += data
        found, start = [], 0
        for end in BLOCK_END.finditer(self._held, self._searched):
            if end.end() == len(self._held) and self._held.endswith(b"\r"):
                break  # a line feed may belong to it
            found.append(bytes(self._held[start : end.end()]))
            start = end.end()
        del self._held[:start]
        self._searched = max(len(self._held) - LINE_ENDS_BYTES, 0)
        if len(self._held) > MAX_EVENT_BYTES:
            raise ValueError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return found

    def rest(self) -> bytes:
        """What the end of the stream leaves without its blank line."""
        held = bytes(self._held)
        self._held.clear()
        return held


def _event(raw: bytes) -> Event | None:
    """The event of a block; None for one without data."""
    reader = SseReader()
    event = next(iter(reader.feed(raw)), None) or reader.finish()
    return None if event is None or event.is_comment_only or not event.data.strip() else event


def _encoded(event: Event, chunk: dict[str, Any]) -> bytes:
    name = b"event: " + event.name.encode() + b"\n" if event.name else b""
    return name + b"data: " + jsontext.encode(chunk) + b"\n\n"


def _says_something(chunk: dict[str, Any]) -> bool:
    """Whether a client learns more from it than a role."""
    choices = _dicts(chunk.get("choices"))
    if chunk.get("error") or (chunk.get("usage") and not choices):
        return True
    return any(_finish(choice) or any(value for key, value in _delta(choice).items() if key != "role") for choice in choices)


def _has_role(chunk: dict[str, Any]) -> bool:
    return any(_delta(choice).get("role") for choice in _dicts(chunk.get("choices")))


def _finish(choice: dict[str, Any]) -> str:
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) and reason not in NO_FINISH else ""


def _delta_key(choice: dict[str, Any]) -> str:
    return "delta" if isinstance(choice.get("delta"), dict) else "message"


def _delta(choice: dict[str, Any]) -> dict[str, Any]:
    """What a choice adds; some servers answer a stream request with one whole message, as one event."""
    delta = choice.get(_delta_key(choice))
    return delta if isinstance(delta, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
