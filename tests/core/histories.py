"""Generated histories for law tests: the shapes that clients really send, odd ones included, and builders for hand-written ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from ctxproxy.core.messages import Directives, Message, chain, identity, make, text_of, tool_calls
from ctxproxy.core.stages.base import Context, Language
from ctxproxy.core.transcript import Entry, Transcript

PNG = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk" * 20
FILLER = "plain filler words about nothing at all "
SPICE = ["", " ", "ok", "错误", "中文没有空格的一段话", "👩‍👩‍👧‍👦🏳️‍🌈👍🏽", "é", "\x1b[31mred\x1b[0m", "\ud83c", "\u2028", "{", '"', "\\", "\r\n"]
SPICE += ["Error: boom", "plain words here", "1250.75", "```py\n    x = 1\n```"]


def count_text(text: str) -> int:
    """Four ASCII characters or one other make a token."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return (ascii_chars + 3) // 4 + len(text) - ascii_chars


def count(message: Message) -> int:
    """Tokens of a message: its texts, arguments and thinking, 4 for the frame, 300 for a media part."""
    tokens = 4 + count_text(text_of(message)) + sum(count_text(c.name + c.arguments) for c in tool_calls(message))
    parts = message.content if isinstance(message.content, list) else []
    parts = [part for part in parts if isinstance(part, dict)]
    media = sum(300 for part in parts if part.get("type") in ("image_url", "input_audio", "file"))
    return tokens + media + sum(count_text(part.get("thinking", "")) for part in parts)


def context(target: int = 0, limit: int | None = None, *, keep_recent_turns: int = 0, language: Language = "en") -> Context:
    """What a stage gets to know; the limit is the target if it is not told."""
    limit = target if limit is None else limit
    return Context(count, count_text, limit, target, keep_recent_turns=keep_recent_turns, language=language)


def transcript(messages: Sequence[Message], pinned: Sequence[int] = ()) -> Transcript:
    """The messages as a transcript of originals with their tips."""
    tips = chain("", map(identity, messages))
    entries = (Entry(m, count(m), tip, pinned=n in pinned) for n, (m, tip) in enumerate(zip(messages, tips, strict=True)))
    return Transcript(tuple(entries))


def user(content: Any, directives: Directives = Directives(), **fields: Any) -> Message:  # noqa: B008  a frozen value
    return Message(make({"role": "user", "content": content, **fields}).raw, {"role": "user", "content": content, **fields}, directives)


def assistant(content: Any, **fields: Any) -> Message:
    return make({"role": "assistant", "content": content, **fields})


def call(call_id: str, name: str = "read", says: Any = None, extra: dict[str, Any] | None = None, **arguments: Any) -> Message:
    return assistant(says, tool_calls=[tool_call(call_id, name, json.dumps(arguments, ensure_ascii=False), **(extra or {}))])


def tool_call(call_id: str, name: str = "read", arguments: str = "{}", **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def result(call_id: str, content: Any, **fields: Any) -> Message:
    return make({"role": "tool", "tool_call_id": call_id, "content": content, **fields})


def long_turn(calls: int, chars: int = 2000) -> list[Message]:
    """One user message and many calls, each with one result."""
    messages = [user("Find the bug and mend it.")]
    for n in range(calls):
        messages += [call(f"c{n}", path=f"src/file_{n}.py"), result(f"c{n}", f"line of file {n}\n" * (chars // 16))]
    return messages


def talk(turns: int, words: int = 6) -> list[Message]:
    """Turns of user and assistant that end with a question."""
    messages = []
    for n in range(turns):
        messages += [user(f"q{n} " + FILLER * words), assistant(f"a{n} " + FILLER * words)]
    return [*messages, user("last question?")]


# ---------------------------------------------------------------- strategies
pieces = st.lists(st.sampled_from(SPICE), max_size=5).map("".join) | st.text(max_size=12)
separators = st.sampled_from(["", "\n", " ", FILLER])
long_texts = st.builds(lambda piece, n, sep, end: (piece + sep) * n + end, pieces, st.sampled_from([3, 40, 90, 300]), separators, pieces)
huge_texts = st.just("row 17 | ok | 2024-01-01\n" * 1000)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | pieces,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
deep_json_texts = st.builds(lambda value, n: json.dumps({"rows": [value] * n, "total": n}), json_values, st.integers(1, 60))
rows = st.sampled_from([None, 1.5, "字", "a \ud83c b", {"id": 1, "name": 'a "quoted" {row}', "tags": ["x", None]}, [[1], {}], {"error": "failed"}])
json_texts = st.builds(lambda row, n: json.dumps({"rows": [row] * n, "total": n}), rows, st.sampled_from([1, 5, 60]))
texts = st.one_of(pieces, long_texts, json_texts, huge_texts, st.just(PNG))


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


media_parts = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": PNG, "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://images.invalid/a.png?sig=1"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==" * 50, "format": "wav"}},
        {"type": "file", "file": {"filename": "contract.pdf", "file_data": "JVBERi0xLjQK" * 50}},
    ]
)
text_parts = st.one_of(texts.map(_text_part), texts.map(lambda text: {**_text_part(text), "cache_control": {"type": "ephemeral"}}))
thinking_parts = st.one_of(
    texts.map(lambda text: {"type": "thinking", "thinking": text, "signature": "SIGN=="}),
    st.just({"type": "redacted_thinking", "data": "REDACTED=="}),
)
user_contents = st.one_of(texts, st.lists(st.one_of(text_parts, media_parts), min_size=1, max_size=4))
answer_contents = st.one_of(texts, st.just(None), st.just(""), st.lists(st.one_of(text_parts, thinking_parts), min_size=1, max_size=3))
result_contents = st.one_of(texts, st.just(""), st.lists(text_parts, min_size=1, max_size=3))
unknown_fields = st.sampled_from([{}, {}, {"x_unknown": {"kept": True}}, {"name": "someone"}])
directives = st.sampled_from([Directives(), Directives(), Directives(drop_first=True), Directives(never_summarize=True)])
arguments = st.one_of(st.sampled_from(["{}", "", "not json", '{"path":"a.py"}', '{"path":"a.py","content":"x"}']), json_texts, long_texts)
tool_names = st.sampled_from(["read", "write_file", "run", "get_next"])


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """Parallel calls with their results, in any order, ids used again in every turn."""
    ids = [f"call_{n}" for n in range(draw(st.integers(1, 3)))]
    extra = draw(st.sampled_from([{}, {"extra_content": {"google": {"thought_signature": "SIG"}}}]))
    calls = [tool_call(one, draw(tool_names), draw(arguments), **extra) for one in ids]
    head = assistant(draw(st.one_of(st.none(), st.just(""), pieces)), tool_calls=calls, **draw(unknown_fields))
    return [head, *(result(one, draw(result_contents), **draw(unknown_fields)) for one in draw(st.permutations(ids)))]


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """A user message, calls with results, and mostly an answer; sometimes a second user message right after."""
    messages = [user(draw(user_contents), draw(directives), **draw(unknown_fields))]
    for exchange in draw(st.lists(exchanges(), max_size=3)):
        messages += exchange
    answer = draw(st.one_of(st.none(), answer_contents.map(lambda content: assistant(content, refusal="no" if content is None else None))))
    return messages if answer is None else [*messages, answer]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """A whole history without leading system messages: turns, then a question, a pending exchange or a prefill."""
    messages = [m for turn in draw(st.lists(turns(), max_size=6)) for m in turn]
    messages += draw(turns())
    if draw(st.integers(0, 9)) == 0:
        messages += [user("Write it as JSON."), assistant('{"haiku": "')]
    if draw(st.integers(0, 9)) == 0:
        messages.insert(draw(st.integers(0, len(messages))), make({"role": "system", "content": "a note in the middle"}))
    return messages


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """A history as a transcript, some entries pinned."""
    messages = draw(histories())
    pinned = draw(st.lists(st.integers(0, len(messages) - 1), max_size=2)) if draw(st.booleans()) else []
    return transcript(messages, pinned)
