"""A chat completion request as it came: what we need of it is read, all the rest is carried as the exact bytes that the client wrote.

Must not know of budgets or sessions. `render` gives the client's own body object back where nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from ctxproxy.core import jsontext
from ctxproxy.core.messages import NO_DIRECTIVES, Directives, Message, read
from ctxproxy.errors import BadRequest, WireError

DIRECTIVES_KEY = "x_context"
OUTPUT_KEYS = ("max_completion_tokens", "max_tokens")
"""The newer name wins where both are given, as with OpenAI's API, which calls the older one deprecated."""
_NOTHING: Mapping[str, bytes] = {}


class ChatRequest(msgspec.Struct, frozen=True, eq=False):
    """A request body, taken apart; `body` is what the client sent, to the byte."""

    body: bytes
    values: Mapping[str, bytes]
    """Exact JSON text of each top-level value in the client's order; that of "messages" is b"", they stand in `messages`."""
    messages: tuple[Message, ...]
    """Without `x_context`, which is in their directives."""
    model: str
    stream: bool
    """True only for a literal true."""
    max_output: int | None
    """Tokens of output asked for; None where there is no positive whole number."""
    output_key: str | None
    """The key that `max_output` stands under."""
    n: int
    tools: bytes | None
    """Exact JSON text; None if absent or null, as with the next two."""
    functions: bytes | None
    response_format: bytes | None
    include_usage: bool
    has_directives: bool
    """Some message had an `x_context`, so that `body` itself cannot be forwarded."""
    is_part: bool = False
    """The body holds more messages than `messages`, which are not for the upstream."""
    array: msgspec.Raw | None = None
    """The list of messages as it stands in the body; None where the body was not read as a whole."""

    def __eq__(self, other: object) -> bool:
        """Whether the same was asked for, to the byte; how much of the body was read at once does not count."""
        return isinstance(other, ChatRequest) and msgspec.structs.astuple(self)[:-1] == msgspec.structs.astuple(other)[:-1]

    __hash__ = None  # type: ignore[assignment]  # its values are a dictionary

    def __repr__(self) -> str:
        return f"ChatRequest(model={self.model!r}, stream={self.stream}, max_output={self.max_output}, n={self.n})"


class Read(NamedTuple):
    """Messages without their `x_context`, and whether any had one."""

    messages: tuple[Message, ...]
    has_directives: bool = False


def parse(body: bytes) -> ChatRequest:
    """The request of a body; raises WireError if it is none that we can read, BadRequest if an `x_context` breaks its rule."""
    try:
        values = jsontext.members(body)
    except ValueError as error:
        raise WireError(f"the body is not a JSON object: {error}") from None
    if "messages" not in values:
        raise WireError("the body has no messages", param="messages")
    try:
        raws = jsontext.items(values["messages"])
    except ValueError as error:
        raise WireError(f"messages is not a list: {error}", param="messages") from None
    texts = {key: b"" if key == "messages" else bytes(value) for key, value in values.items()}
    return assembled(body, texts, read_all(raws), values["messages"])


def without_bytes(request: ChatRequest) -> ChatRequest:
    """What the request says, without the bytes that it came as: enough to keep it, not to send it."""
    return structs.replace(request, body=b"", values={}, tools=None, functions=None, response_format=None, array=None)


def read_all(raws: Sequence[msgspec.Raw], at: int = 0) -> Read:
    """The messages of these JSON texts, the first of which stands at `at`; raises as `parse`."""
    bare = [_message(at + n, bytes(raw)) for n, raw in enumerate(raws)]
    if not any(DIRECTIVES_KEY in message.fields for message in bare):
        return Read(tuple(bare))
    return Read(tuple(_without_directives(at + n, message) for n, message in enumerate(bare)), has_directives=True)


def assembled(body: bytes, texts: Mapping[str, bytes], read: Read, array: msgspec.Raw | None = None) -> ChatRequest:
    """The request of a body whose values and messages are known, `array` the list of them where it was read as a whole."""
    output_key, max_output = _max_output(texts)
    model, options = _decoded(texts, "model"), _decoded(texts, "stream_options")
    return ChatRequest(
        body=body,
        values=texts,
        messages=read.messages,
        model=model if isinstance(model, str) else "",
        stream=texts.get("stream") == b"true",
        max_output=max_output,
        output_key=output_key,
        n=_positive(_decoded(texts, "n")) or 1,
        tools=_unless_null(texts.get("tools")),
        functions=_unless_null(texts.get("functions")),
        response_format=_unless_null(texts.get("response_format")),
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        has_directives=read.has_directives,
        array=array,
    )


def render(request: ChatRequest, messages: Sequence[Message] | None = None, changes: Mapping[str, bytes] = _NOTHING) -> bytes:
    """The body to send: the client's own object if nothing changed, else one that keeps the exact bytes of every untouched value.

    `messages` None keeps the request's; `changes` are JSON texts that replace top-level values, or follow them where the key is new.
    """
    if messages is None and not changes and not request.has_directives and not request.is_part:
        return request.body
    chosen = request.messages if messages is None else messages
    texts = {**request.values, **changes, "messages": b"[" + b",".join([message.raw for message in chosen]) + b"]"}
    return jsontext.object_of(texts)


def logged(message: Message) -> bytes:
    """A message as the log keeps it: its exact bytes, and what the client said of it in `x_context`."""
    if message.directives == NO_DIRECTIVES:
        return message.raw
    texts = {key: bytes(text) for key, text in jsontext.members(message.raw).items()}
    said = {key: value for key, value in message.directives._asdict().items() if value}
    return jsontext.object_of({**texts, DIRECTIVES_KEY: jsontext.encode(said)})


def from_log(raw: bytes) -> Message:
    """The message that `logged` gave these bytes for."""
    return _without_directives(0, read(raw))


def _message(at: int, raw: bytes) -> Message:
    try:
        return read(raw)
    except ValueError as error:
        raise WireError(f"messages[{at}] cannot be read: {error}", param=f"messages[{at}]") from None


def _without_directives(at: int, message: Message) -> Message:
    if DIRECTIVES_KEY not in message.fields:
        return message
    texts = {key: bytes(text) for key, text in jsontext.members(message.raw).items() if key != DIRECTIVES_KEY}
    fields = {key: value for key, value in message.fields.items() if key != DIRECTIVES_KEY}
    return Message(jsontext.object_of(texts), fields, _directives(message.fields[DIRECTIVES_KEY], f"messages[{at}].{DIRECTIVES_KEY}"))


def _directives(value: Any, where: str) -> Directives:
    """The directives of an `x_context`: null and {} say nothing; each flag is true or false, the number whole and at least 1."""
    if value is None:
        return NO_DIRECTIVES
    if not isinstance(value, dict):
        raise BadRequest(f"{where} must be an object with any of {', '.join(Directives._fields)}", param=where)
    for key, one in value.items():
        if key not in Directives._fields:
            raise BadRequest(f"{where}.{key} is unknown; known are {', '.join(Directives._fields)}", param=where)
        if key != "expire_after_turns" and not isinstance(one, bool):
            raise BadRequest(f"{where}.{key} must be true or false", param=where)
        if key == "expire_after_turns" and one is not None and (isinstance(one, bool) or not isinstance(one, int) or one < 1):
            raise BadRequest(f"{where}.{key} must be a whole number of turns, 1 or more", param=where)
    return Directives(**value)


def _max_output(texts: Mapping[str, bytes]) -> tuple[str | None, int | None]:
    for key in OUTPUT_KEYS:
        tokens = _positive(_decoded(texts, key))
        if tokens is not None:
            return key, tokens
    return None, None


def _positive(value: Any) -> int | None:
    """A positive whole number, also where a client wrote it as 4096.0; None for all else (-1 means "no limit" to llama.cpp)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None


def _decoded(texts: Mapping[str, bytes], key: str) -> Any:
    if key not in texts:
        return None
    try:
        return jsontext.decode(texts[key])
    except ValueError as error:
        raise WireError(f"{key} cannot be read: {error}", param=key) from None


def _unless_null(text: bytes | None) -> bytes | None:
    return None if text == b"null" else text
