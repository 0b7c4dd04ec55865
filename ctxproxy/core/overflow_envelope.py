"""Where an error body speaks: its messages, codes and named figures, however they are wrapped; never what it echoes.

Only the keys below are entered. What the client sent (`input`, `messages`, `prompt`, `content`) and what the model said (`choices`,
`tool_calls`, `delta`) are none of them, so neither can be taken for an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from ctxproxy.core.jsontext import decode
from ctxproxy.core.overflow_text import Marked, marked

MAX_BODY_BYTES = 1_048_576
"""A larger error body is not read: no provider states a fault that way, and reading it would cost more than it can tell."""
MAX_DEPTH = 12
MAX_ITEMS = 20
MAX_KEYS = 64
MAX_STATEMENTS = 24
MAX_CHARS = 24_000
"""Bound on all messages of a body together."""
MAX_CODE_CHARS = 96
MAX_FIGURE_DIGITS = 12

# fmt: off
SPEECH_KEYS = frozenset({
    "message", "msg", "error", "errors", "detail", "details", "error_msg", "error_message", "errormessage", "errmsg", "err_msg",
    "error_description", "description", "title", "reason", "cause", "innererror", "inner_error", "originalmessage", "original_message",
    "metadata", "raw", "response", "base_resp", "status_msg", "body", "exception", "fault", "faultstring", "upstream_error",
    "provider_error", "previous_errors", "error_info", "data", "incomplete_details", "err", "output_error", "result_error", "hint",
})
WRAPPER_KEYS = frozenset({"result", "inner", "upstream", "upstream_response", "provider_response", "original_error", "source"})
"""Entered where they hold an object: under such names a text may be an answer."""
CODE_KEYS = frozenset({
    "code", "type", "status", "status_code", "error_code", "errorcode", "error_type", "errortype", "__type", "reason", "name", "err_code",
    "kind",
})
# fmt: on
FIGURE_ROLES = {
    "n_prompt_tokens": "prompt",
    "prompt_tokens": "prompt",
    "input_tokens": "prompt",
    "num_prompt_tokens": "prompt",
    "n_ctx": "limit",
    "max_context_length": "limit",
    "context_length": "limit",
    "context_window": "limit",
    "max_model_len": "limit",
    "max_input_tokens": "limit",
    "max_prompt_tokens": "limit",
    "max_context_tokens": "limit",
    "requested_tokens": "requested",
}
"""Named figures of an error object (llama.cpp's `exceed_context_size_error` has `n_prompt_tokens` and `n_ctx`)."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One object of an error, or one text: what it says, its codes (lower case), its named figures by role."""

    said: Marked
    codes: tuple[str, ...] = ()
    named: tuple[tuple[str, int], ...] = ()


def document(body: bytes) -> object:
    """The JSON value of a body, the list of values of an event stream, else its text; None if there is nothing to read."""
    if len(body) > MAX_BODY_BYTES or not body.strip():
        return None
    try:
        return decode(body)
    except ValueError:
        text = body.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        return _events(text) if text.startswith(("data:", "event:", ":", "id:")) else text


def _events(text: str) -> list[object]:
    """The data values of an event stream that came as a whole."""
    values: list[object] = []
    for block in text.replace("\r\n", "\n").split("\n\n")[:MAX_KEYS]:
        data = "\n".join(line[5:].strip() for line in block.split("\n") if line.startswith("data:"))
        if data and data != "[DONE]":
            values.append(_value(data))
    return values


def statements(value: object) -> tuple[Statement, ...]:
    """All that a document says as an error, outermost first."""
    reader = _Reader()
    reader.read(value, 0)
    return tuple(reader.found)


def statuses_in(found: Iterable[Statement]) -> frozenset[int]:
    """The HTTP error statuses that the codes of an error repeat."""
    return frozenset(int(code) for statement in found for code in statement.codes if len(code) == 3 and code.isdecimal() and 400 <= int(code) <= 599)


class _Reader:
    """Walks a document within bounds, collecting statements."""

    def __init__(self) -> None:
        self.found: list[Statement] = []
        self._left_chars = MAX_CHARS

    def read(self, value: object, depth: int) -> None:
        if depth > MAX_DEPTH or len(self.found) >= MAX_STATEMENTS:
            return
        if isinstance(value, str):
            self._say([value], (), (), depth)
        elif isinstance(value, dict):
            self._object(value, depth)
        elif isinstance(value, list):
            for item in value[:MAX_ITEMS]:
                self.read(item, depth + 1)

    def _object(self, value: dict[object, object], depth: int) -> None:
        texts: list[str] = []
        inner: list[object] = []
        codes: list[str] = []
        named: list[tuple[str, int]] = []
        for key, item in islice(value.items(), MAX_KEYS):
            name = str(key).lower()
            if name in CODE_KEYS and isinstance(item, (str, int)):
                codes.append(str(item)[:MAX_CODE_CHARS].lower())
            if name in FIGURE_ROLES and (figure := _figure(item)) is not None:
                named.append((FIGURE_ROLES[name], figure))
            if _speaks(name, item):
                (texts if isinstance(item, str) else inner).append(item)  # type: ignore[arg-type]
        if texts or codes or named:
            self._say(texts, tuple(codes), tuple(named), depth)
        for item in inner:
            self.read(item, depth + 1)

    def _say(self, texts: list[str], codes: tuple[str, ...], named: tuple[tuple[str, int], ...], depth: int) -> None:
        plain: list[str] = []
        inner: list[object] = []
        for text in texts:
            rest, values = _parted(text[: self._left_chars])
            plain.append(rest)
            inner += values
            self._left_chars -= len(rest)
        self.found.append(Statement(marked(" ; ".join(plain)), codes, named))
        for item in inner:
            self.read(item, depth + 1)


def _speaks(name: str, item: object) -> bool:
    """Whether an error may speak in the item under this key."""
    if name in WRAPPER_KEYS:
        return isinstance(item, dict)
    return name in SPEECH_KEYS and not (name == "data" and isinstance(item, list))


def _figure(value: object) -> int | None:
    """The figure that a named value is: a whole number, or a text of nothing but its digits."""
    if isinstance(value, str) and len(value) <= MAX_FIGURE_DIGITS and value.isascii() and value.isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parted(text: str) -> tuple[str, list[object]]:
    """A message without the JSON objects that stand in it, and those objects."""
    decoder = json.JSONDecoder()
    values: list[object] = []
    kept: list[str] = []
    at = 0
    for _ in range(MAX_ITEMS):
        start = text.find("{", at)
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            kept.append(text[at : start + 1])
            at = start + 1
            continue
        values.append(value)
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]]), values


def _value(text: str) -> object:
    try:
        return decode(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return text
