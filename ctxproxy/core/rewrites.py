"""Smaller versions of one message: a marker, a head and tail, shorter arguments, notes for media.

Role, ids, shape of content (string or parts), unknown fields, signed blocks and media stay as they are unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ctxproxy.core import jsontext, markers
from ctxproxy.core.extractive import best_of
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, part_text, text_of, with_fields
from ctxproxy.core.selection import level
from ctxproxy.core.shorten import shorten
from ctxproxy.core.transcript import CountMessage, Entry

SHORT_PART_CHARS = 120
"""A text part this short stays beside a marker: an exit code after a long log."""
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Blocks whose text is signed: they go whole or stay whole."""
MEDIA = frozenset({"image_url", "image", "input_image", "input_audio", "audio", "file", "input_file", "video_url", "video", "document"})


def marked(entry: Entry, topic: str, language: Language) -> Message:
    """The message with its text replaced by a marker; the same message if it has no text."""
    marker = markers.marker(topic, entry.tokens, entry.tip, language)
    content = entry.message.content
    if isinstance(content, str):
        return with_fields(entry.message, content=marker) if content else entry.message
    if not isinstance(content, list):
        return entry.message
    return with_fields(entry.message, content=list(_marked_parts(content, marker)))


def _marked_parts(parts: list[Any], marker: str) -> Iterable[Any]:
    """The marker in place of the first long text part, the others left out; all else stays."""
    used = False
    for part in parts:
        if not _is_text(part) or len(part_text(part)) <= SHORT_PART_CHARS:
            yield part
        elif not used or "cache_control" in part:
            yield {**part, "text": marker}
            used = True


def shortened(entry: Entry, topic: str, max_chars: int, language: Language, *, banner: bool = True) -> Message:
    """The message with its texts cut to head and tail, together about `max_chars` characters, under a marker."""
    mark = markers.marker(topic, entry.tokens, entry.tip, language) if banner else ""
    content = entry.message.content
    if isinstance(content, str):
        return with_fields(entry.message, content=shorten(content, max_chars, language, mark)) if len(content) > max_chars else entry.message
    if not isinstance(content, list):
        return entry.message
    room = level([len(part_text(part)) for part in content if _is_text(part)], max_chars)
    return with_fields(entry.message, content=[_shortened_part(part, room, language, mark) for part in content])


def gist(entry: Entry, topic: str, max_tokens: int, language: Language) -> Message:
    """The message with a marker and about `max_tokens` tokens of what says most of its text; of content in parts, head and tail."""
    content = entry.message.content
    if not isinstance(content, str):
        return shortened(entry, topic, max_tokens * len(text_of(entry.message)) // max(entry.tokens, 1), language)
    mark = markers.marker(topic, entry.tokens, entry.tip, language)
    best = best_of(content, max_tokens, lambda text: len(text) * entry.tokens // max(len(content), 1) + 1)
    return with_fields(entry.message, content=f"{mark}\n{best}" if best else mark)


def _shortened_part(part: Any, room: int, language: Language, mark: str) -> Any:
    return {**part, "text": shorten(part["text"], room, language, mark)} if _is_text(part) and len(part["text"]) > room else part


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") not in THINKING and isinstance(part.get("text"), str)


def fitted(entry: Entry, topic: str, max_tokens: int, count: CountMessage, language: Language) -> Message:
    """The message with its texts cut until it has at most `max_tokens` tokens, or as near as a marker and a notice come to that."""
    message, tokens = entry.message, entry.tokens
    chars = len(text_of(message))
    for _ in range(8):
        if tokens <= max_tokens:
            return message
        chars = min(chars * max_tokens // tokens, chars * 9 // 10)
        message = shortened(entry, topic, chars, language)
        tokens = count(message)
    return shortened(entry, topic, 0, language)


def without_thinking(message: Message) -> Message:
    """The message without its thinking blocks, if something else is left; the same message if it has none."""
    content = message.content
    if not isinstance(content, list):
        return message
    rest = [part for part in content if not (isinstance(part, dict) and part.get("type") in THINKING)]
    return with_fields(message, content=rest) if rest and len(rest) < len(content) else message


def has_media(message: Message) -> bool:
    content = message.content
    return isinstance(content, list) and any(is_media(part) for part in content)


def any_media(messages: Iterable[Message]) -> bool:
    """Whether any message holds media; nearly all contents are plain texts, and a long history is looked through for each request."""
    return any(has_media(message) for message in [one for one in messages if not isinstance(one.fields.get("content"), str)])


def is_media(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in MEDIA


def without_media(entry: Entry, language: Language) -> Message:
    """The message with each media part replaced by a text part that tells what it was."""
    parts = [_media_note(part, entry, language) if is_media(part) else part for part in entry.message.content]
    return with_fields(entry.message, content=parts)


def _media_note(part: dict[str, Any], entry: Entry, language: Language) -> dict[str, Any]:
    note = {"type": "text", "text": markers.marker(markers.topic_of_media(part, language), entry.tokens, entry.tip, language)}
    return {**note, "cache_control": part["cache_control"]} if "cache_control" in part else note


def with_short_arguments(message: Message, max_chars: int, language: Language) -> Message:
    """The message with call arguments over `max_chars` characters cut, valid JSON again; signed calls stay as they are."""
    return with_arguments(message, lambda _, text: short_arguments(text, max_chars, language))


def with_arguments(message: Message, change: Callable[[str, str], str]) -> Message:
    """The message with what `change` makes of each call's id and arguments, where that is shorter; signed calls stay as they are."""
    calls = message.fields.get("tool_calls")
    if not isinstance(calls, list):
        return message
    short = [_short_call(call, change) for call in calls]
    changed = any(new is not old for new, old in zip(short, calls, strict=True))
    return with_fields(message, tool_calls=short) if changed else message


def _short_call(call: Any, change: Callable[[str, str], str]) -> Any:
    function = call.get("function") if isinstance(call, dict) and "extra_content" not in call else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str):
        return call
    short = change(str(call.get("id", "")), arguments)
    return {**call, "function": {**function, "arguments": short}} if len(short) < len(arguments) else call


def short_arguments(arguments: str, max_chars: int, language: Language) -> str:
    """Arguments in about `max_chars` characters: JSON stays JSON; what was none, or cannot be cut so far, becomes a note in an object."""
    if len(arguments) <= max_chars:
        return arguments
    compact = _compact(arguments)
    if compact is not None and len(compact) <= max_chars:
        return compact
    short = shorten(compact, max_chars * 4 // 5, language) if compact is not None else ""
    if _compact(short) is not None:
        return short
    note = markers.omitted(len(arguments), len(arguments), "characters", language)
    return jsontext.encode({"omitted": note}).decode()


def _compact(text: str) -> str | None:
    """An object's JSON text on one line; None if it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = jsontext.decode(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    if "\n" not in text.strip():
        return text.strip()
    return jsontext.encode(value).decode() if isinstance(value, dict) else None
