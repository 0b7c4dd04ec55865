"""`context.report_usage: logical`: the `usage` of an answer raised to the size of what the client means, all other bytes as they came.

A client that compacts by itself decides by `usage`. Where a prompt was made smaller on the way, it reads of a conversation that
does not grow, and would never act (a blinded client; Headroom, context-guru PR 67). Raised figures give it its own size back, and never
more than the window holds: some clients take a larger figure for an overflow in silence and throw the answer away (pi's `overflow.ts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ctxproxy.core import jsontext

LONGEST_LINE_BYTES = 1_048_576
"""A line of a stream that is longer passes as it comes: no event with `usage` is."""
PLAUSIBLE = (0.3, 4.0)
"""A report this far from our count of what was sent is of something else (`calibration`): a constant, or only what was not cached."""
_LINE_ENDS = re.compile(rb"([\r\n])")
_Change = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Logical:
    """A prompt as the client means it and as it was sent, and the window that is believed; in tokens."""

    tokens_in: int
    tokens_sent: int
    window: int

    def prompt_tokens(self, reported: int, completion: int) -> int:
        """The figure in place of what the upstream reported: that and what was left out, up to a full window, never less than it was."""
        lowest, highest = PLAUSIBLE
        plausible = lowest * self.tokens_sent <= reported <= highest * self.tokens_sent
        meant = reported + self.tokens_in - self.tokens_sent if plausible else self.tokens_in
        return max(reported, min(meant, self.window - completion))


def raised(text: bytes, size: Logical) -> bytes:
    """A JSON text with each `usage` in it raised; the same object where there is nothing to raise."""
    if b'"usage"' not in text or size.tokens_in <= size.tokens_sent:
        return text
    try:
        whole = text.decode()
        changes = sorted(_in_chunk(whole, size))
    except ValueError:
        return text
    return _changed(whole, changes).encode() if changes else text


class EventRaiser:
    """Raises the `usage` of a stream's events; give it the decoded bytes of one stream, cut anywhere.

    It holds back the line that is not at its end yet. An event whose data stands on several lines passes as it is.
    """

    def __init__(self, size: Logical) -> None:
        self._size = size
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._skips = False
        """Within a line too long to be looked at."""

    def feed(self, data: bytes) -> bytes:
        """What can go on to the client."""
        *whole, rest = _LINE_ENDS.split(data)
        out = [self._line(piece) if at % 2 == 0 else piece for at, piece in enumerate(whole)]
        out.append(self._kept(rest))
        return b"".join(out)

    def finish(self) -> bytes:
        """What is held back still, at the end of the stream."""
        return self._line(b"")

    def _line(self, end: bytes) -> bytes:
        line = b"".join([*self._held, end])
        self._held, self._held_bytes = [], 0
        skipped, self._skips = self._skips, False
        field, colon, value = line.partition(b":")
        return line if skipped or field != b"data" or not colon else field + colon + raised(value, self._size)

    def _kept(self, rest: bytes) -> bytes:
        """Nothing, while the line that has begun may hold a `usage`; what was kept of it once it cannot."""
        self._held.append(rest)
        self._held_bytes += len(rest)
        if not self._skips and self._held_bytes <= LONGEST_LINE_BYTES:
            return b""
        out, self._held, self._skips = b"".join(self._held), [], True
        return out


def _in_chunk(text: str, size: Logical) -> Iterator[_Change]:
    """The changes of an answer or a chunk: `usage` where OpenAI has it, in `x_groq` (Groq), in a choice (Moonshot)."""
    for key, start, end in jsontext.spans(text):
        if key == "usage":
            yield from _moved(_in_usage(text[start:end], size), start)
        elif key == "x_groq" and text[start] == "{":
            yield from _moved(_in_holder(text[start:end], size), start)
        elif key == "choices" and text[start] == "[":
            for first, last in jsontext.item_spans(text[start:end]):
                choice = text[start + first : start + last]
                yield from _moved(_in_holder(choice, size) if choice.startswith("{") else (), start + first)


def _in_holder(text: str, size: Logical) -> Iterator[_Change]:
    for key, start, end in jsontext.spans(text):
        if key == "usage":
            yield from _moved(_in_usage(text[start:end], size), start)


def _in_usage(text: str, size: Logical) -> Iterator[_Change]:
    """The changes of one usage object; none where it is no object or has no whole number of prompt tokens."""
    if not text.startswith("{"):
        return
    numbers = {key: (start, end, int(text[start:end])) for key, start, end in jsontext.spans(text) if text[start:end].isdecimal()}
    if "prompt_tokens" not in numbers:
        return
    reported, completion = numbers["prompt_tokens"][2], numbers.get("completion_tokens", (0, 0, 0))[2]
    more = size.prompt_tokens(reported, completion) - reported
    for key in ("prompt_tokens", "total_tokens"):
        if key in numbers and more > 0:
            start, end, value = numbers[key]
            yield start, end, str(value + more)


def _moved(changes: Iterator[_Change] | tuple[()], by: int) -> Iterator[_Change]:
    return ((start + by, end + by, text) for start, end, text in changes)


def _changed(text: str, changes: list[_Change]) -> str:
    pieces, at = [], 0
    for start, end, new in changes:
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])
