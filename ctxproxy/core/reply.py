"""The assistant's answer as the client will send it back: put together from the events of a stream, or read from a plain body.

Must not know of HTTP; `ReplyAssembler` takes the data of each event (`sse.Event`) and never raises, whatever the upstream wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ctxproxy.core import jsontext
from ctxproxy.core.fragments import Calls, Pieces, Tree, add, built
from ctxproxy.core.messages import Message, make, read
from ctxproxy.core.plain_chunks import PlainChoice, PlainDelta, plain_chunk

DONE = b"[DONE]"
NO_FINISH = ("", "null")
"""Some servers write these into every chunk where OpenAI writes null."""
UNUSUAL_IN_A_ROW = 3
"""Chunks that are not plain, after which those that came with them are not asked whether they are: a tool call's come one after the other."""
MANY_PIECES = 128


class Usage(msgspec.Struct, frozen=True):
    """Token counts as the upstream reports them; `cached_tokens` None where it says nothing of its cache."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None


class Choice(msgspec.Struct, frozen=True):
    """One of the answers; `finish_reason` None where it broke off."""

    index: int
    message: Message
    finish_reason: str | None = None


class Reply(msgspec.Struct, frozen=True):
    """A whole answer, or what has come of it."""

    choices: tuple[Choice, ...]
    """By index; with n > 1 there are several."""
    usage: Usage | None = None
    complete: bool = False
    """Every choice has its finish reason or the stream its [DONE], and there was no error."""
    error: bytes | None = None
    """The first error object that came in place of an answer, as JSON text with all around it."""
    model: str = ""


class ReplyAssembler:
    """Feed it the data of every event of one stream, in order; `result` may be asked for at any time."""

    def __init__(self) -> None:
        self._choices: dict[int, _OpenChoice] = {}
        self._usage: Usage | None = None
        self._error: bytes | None = None
        self._model = ""
        self._done = False
        self._damaged = False

    def feed(self, data: bytes, name: str = "") -> None:
        """Take in an event's data; `name` is its event field ("error" marks an error whose data has no `error` key)."""
        text = data.strip()
        if text == DONE:
            self._done = True
        elif text:
            self._feed_chunk(text, name)

    def feed_all(self, datas: Sequence[bytes]) -> None:
        """`feed` for the data of several events without a name, in order; at a fraction of the cost where they go on with a text."""
        unusual = 0
        for data in datas:
            chunk = plain_chunk(data) if unusual < UNUSUAL_IN_A_ROW else None
            if chunk is None:
                unusual += 1
                self.feed(data)
                continue
            unusual = 0
            plain = chunk.choices[0]
            known = self._choices.get(plain.index)
            if known is None or not self._model:
                self._model = self._model or chunk.model or ""
                known = self._choices.setdefault(plain.index, _OpenChoice())
            known.feed_plain(plain)
        for choice in self._choices.values():
            choice.gather()

    @property
    def done(self) -> bool:
        """The stream's [DONE] has come."""
        return self._done

    @property
    def has_output(self) -> bool:
        """Something of an answer has come: text, a call, reasoning, a sound; a bare role is nothing yet."""
        return any(choice.has_output for choice in self._choices.values())

    @property
    def is_finished(self) -> bool:
        """Every choice seen so far has its finish reason, or the stream its [DONE]."""
        return self._done or (bool(self._choices) and all(choice.is_finished for choice in self._choices.values()))

    def result(self) -> Reply:
        """What has come so far."""
        choices = tuple(self._choices[index].choice(index) for index in sorted(self._choices))
        finished = bool(choices) and all(choice.finish_reason for choice in choices)
        whole = finished or (self._done and not self._damaged)
        return Reply(choices, self._usage, whole and _no_failure(self._error, choices), self._error, self._model)

    def _feed_chunk(self, text: bytes, name: str) -> None:
        try:
            chunk = jsontext.decode(text)
        except ValueError:
            self._damaged = self._damaged or text.startswith(b"{")
            chunk = None
        is_plain = not name and _is_plain(chunk)
        if not is_plain and (name == "error" or _is_error(chunk)):
            self._error = self._error or text
        if not isinstance(chunk, dict):
            return
        if not is_plain:
            self._usage = _usage_of(chunk) or self._usage
        self._model = self._model or _text_or_empty(chunk.get("model"))
        for position, choice in enumerate(_dicts(chunk.get("choices"))):
            index = choice.get("index")
            self._choices.setdefault(index if type(index) is int else position, _OpenChoice()).feed(choice)


class _OpenChoice:
    """One choice that is still coming."""

    def __init__(self) -> None:
        self._fields: Tree = {}
        self._calls = Calls()
        self._finish_reason: str | None = None
        self._empty = True
        self.has_output = False

    def feed_plain(self, choice: PlainChoice) -> None:
        delta = choice.delta
        if self.has_output and delta.role is None and choice.finish_reason is None and self._goes_on(delta):
            return
        self._empty = False
        self.has_output = bool(self.has_output or delta.content or delta.reasoning_content or delta.reasoning)
        if choice.finish_reason is not None and choice.finish_reason not in NO_FINISH:
            self._finish_reason = choice.finish_reason
        texts = {"content": delta.content, "reasoning_content": delta.reasoning_content, "reasoning": delta.reasoning}
        add(self._fields, {"role": delta.role, **texts})

    def _goes_on(self, delta: PlainDelta) -> bool:
        """Let a text go on that has begun, if the delta has but one; else nothing, and False."""
        key, text = "content", delta.content
        if text is None:
            key, text = ("reasoning_content", delta.reasoning_content) if delta.reasoning is None else ("reasoning", delta.reasoning)
        elif delta.reasoning_content is not None or delta.reasoning is not None:
            return False
        pieces = self._fields.get(key)
        if type(pieces) is not Pieces or text is None:
            return False
        pieces.append(text)
        return True

    def gather(self) -> None:
        """Make one of many pieces of a text: they take ten times the room of what they say."""
        for value in self._fields.values():
            if type(value) is Pieces and len(value) > MANY_PIECES:
                value[:] = ["".join(value)]

    def feed(self, choice: dict[str, Any]) -> None:
        self._finish_reason = _finish_reason(choice) or self._finish_reason
        delta = choice.get("delta")
        if not isinstance(delta, dict) and self._empty:
            delta = choice.get("message")  # a server that answers a stream request with one plain completion, as one event
        if isinstance(delta, dict) and delta:
            self._empty = False
            self._take(delta)

    def _take(self, delta: dict[str, Any]) -> None:
        text = delta.get("content")
        if len(delta) == 1 and isinstance(text, str):
            self.has_output = self.has_output or bool(text)
            add(self._fields, delta)
            return
        self.has_output = self.has_output or any(value for key, value in delta.items() if key != "role")
        for call in _dicts(delta.get("tool_calls")):
            self._calls.feed(call)
        audio = delta.get("audio")
        if isinstance(audio, dict) and isinstance(audio.get("id"), str):
            self._fields["audio"] = {"id": audio["id"]}  # a client sends back the id alone; the sound itself is not kept
        add(self._fields, {key: value for key, value in delta.items() if key not in ("tool_calls", "audio")})

    @property
    def is_finished(self) -> bool:
        return self._finish_reason is not None

    def choice(self, index: int) -> Choice:
        fields: dict[str, Any] = {"role": "assistant", "content": None, **built(self._fields)}
        if calls := self._calls.built():
            fields["tool_calls"] = calls
        if fields["content"] is None and not any(fields.get(key) for key in ("tool_calls", "function_call", "refusal", "audio")):
            fields["content"] = ""  # null is legal beside one of these only
        return Choice(index, make(fields), self._finish_reason)


def reply_from_body(body: bytes) -> Reply | None:
    """The reply of a plain JSON answer, each message with its exact bytes; an error body gives one without choices; None for all else."""
    try:
        answer = jsontext.decode(body)
        if not isinstance(answer, dict) or not (isinstance(answer.get("choices"), list) or _is_error(answer)):
            return None
        choices = _plain_choices(body) if answer.get("choices") else ()
    except ValueError:
        return None
    error = body if _is_error(answer) else None
    return Reply(choices, _usage_of(answer), bool(choices) and _no_failure(error, choices), error, _text_or_empty(answer.get("model")))


def _plain_choices(body: bytes) -> tuple[Choice, ...]:
    """Raises ValueError if a choice or its message is no object."""
    choices = []
    for position, raw in enumerate(jsontext.items(jsontext.members(body)["choices"])):
        texts = jsontext.members(raw)
        if "message" in texts:
            fields = jsontext.decode(bytes(raw))
            index = fields.get("index")
            choices.append(Choice(index if type(index) is int else position, read(bytes(texts["message"])), _finish_reason(fields)))
    return tuple(sorted(choices, key=lambda choice: choice.index))


def _no_failure(error: bytes | None, choices: tuple[Choice, ...]) -> bool:
    return error is None and all(choice.finish_reason != "error" for choice in choices)


def _is_plain(chunk: Any) -> bool:
    """Whether a chunk is what nearly all are: one choice, and neither an error nor usage anywhere. Looked at first, for it is asked of each."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choice := choices[0], dict):
        return False
    if chunk.get("error") or chunk.get("usage") or chunk.get("x_groq") or choice.get("error") or choice.get("usage"):
        return False
    return bool(chunk.get("object") != "error" and chunk.get("type") != "error")


def _is_error(chunk: Any) -> bool:
    """OpenAI's `{"error": …}`, also in a choice (OpenRouter), and the flat `{"object": "error", …}` (vLLM) or `{"type": "error", …}`."""
    if not isinstance(chunk, dict):
        return False
    if chunk.get("error") or chunk.get("object") == "error" or chunk.get("type") == "error":
        return True
    return any(choice.get("error") for choice in _dicts(chunk.get("choices")))


def _finish_reason(choice: dict[str, Any]) -> str | None:
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) and reason not in NO_FINISH else None


def _usage_of(chunk: dict[str, Any]) -> Usage | None:
    """Where OpenAI has it, else in `x_groq` (Groq) or in the choice (Moonshot); None unless it holds whole numbers."""
    extra = chunk.get("x_groq")
    places = [chunk, *([extra] if isinstance(extra, dict) else []), *_dicts(chunk.get("choices"))]
    return next((usage for place in places if (usage := _usage(place.get("usage")))), None)


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict) or type(value.get("prompt_tokens")) is not int:
        return None
    completion = value.get("completion_tokens")
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    if cached is None:
        cached = value.get("prompt_cache_hit_tokens", value.get("cached_tokens"))  # DeepSeek; Moonshot
    return Usage(value["prompt_tokens"], completion if type(completion) is int else 0, cached if type(cached) is int else None)


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
