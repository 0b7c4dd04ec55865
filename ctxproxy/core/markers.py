"""The words that stand in for what was taken out: markers, notices of omission and acknowledgements, English and Chinese.

All are noun phrases marked as background: none reads like an order or names a way to get more, because the model would
follow it (a marker that promises a tool makes it call that tool in vain).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ctxproxy.core import cuts, jsontext
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, Tip, ToolCall, text_of

Unit: TypeAlias = Literal["characters", "lines", "items", "keys"]

MARKER_DIGITS = 16
"""Hex digits of a tip in a marker: 64 bits, enough that no two messages of a store share one by chance."""
TOPIC_CHARS = 60
OPENINGS = ("[COMPACTED: ", "[已压缩: ")
PATH_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "target_file", "url", "uri")
MAIN_ARGUMENTS = (*PATH_ARGUMENTS, "command", "cmd", "query", "q", "pattern", "name", "id")
"""Argument names that tell best what a call was about, best first."""
UNITS_ZH: Mapping[Unit, str] = {"characters": "个字符", "lines": "行", "items": "项", "keys": "个键"}
CLAUSE_END = re.compile(r"[\n。！？；!?;]|\.\s|:\s|，")
FRAME = re.compile(r"[\[\]·\x00-\x1f\x7f\ud800-\udfff]+")
OFFER = re.compile(r"(?i)\b(?:call|use|invoke|with|via|tool)\W{1,3}(?:(?:the|tool|function)\W{1,3})*[`'\"]?[a-z]+_")
"""What reads as advice to call something by name."""


def marker_of(tip: Tip) -> str:
    """The marker under which the original is found again (`GET expand/{marker}`)."""
    return tip[:MARKER_DIGITS]


def marker(topic: str, tokens: int, tip: Tip, language: Language) -> str:
    """`[COMPACTED: topic · n tokens · marker]`; without a tip there is no original to find and no last part."""
    name = f" · {marker_of(tip)}" if tip else ""
    return f"[已压缩: {topic} · {tokens} 个词元{name}]" if language == "zh" else f"[COMPACTED: {topic} · {tokens} tokens{name}]"


def is_marker(text: str) -> bool:
    """Whether a text of ours is a marker and nothing else."""
    return text.startswith(OPENINGS) and text.endswith("]") and "\n" not in text


def omitted(count: int, total: int, unit: Unit, language: Language) -> str:
    """`[n of total lines omitted]`."""
    return f"[此处省略 {count} {UNITS_ZH[unit]}，共 {total} {UNITS_ZH[unit]}]" if language == "zh" else f"[{count} of {total} {unit} omitted]"


def omitted_data(kind: str, chars: int, language: Language) -> str:
    """`[image/png data of n characters omitted]`."""
    return f"[此处省略 {kind} 数据，共 {chars} 个字符]" if language == "zh" else f"[{kind} data of {chars} characters omitted]"


def acknowledgement(language: Language) -> str:
    """What the assistant says where a stretch between two user messages is gone."""
    return "[此前的部分对话已省略]" if language == "zh" else "[part of the earlier conversation omitted]"


def turns_compacted(turns: int, language: Language) -> str:
    """The line above what stands for so many turns at the start of a user message."""
    if language == "zh":
        return f"【背景：此前 {turns} 轮对话的摘要，并非新的请求】"
    return f"[Background: {turns} earlier turns in short, not a new request]"


def end_of_background(language: Language) -> str:
    """The line between that and the message as it was said."""
    return "【背景到此为止，以下为消息原文】" if language == "zh" else "[End of the background; the message itself:]"


def unanswered(language: Language) -> str:
    """The result of a call that never got one."""
    return "[此调用没有结果]" if language == "zh" else "[no result: the call was interrupted]"


def stray(text: str, language: Language) -> str:
    """The text of a result whose call is gone."""
    return f"[失去调用的工具结果] {text}" if language == "zh" else f"[tool result without its call] {text}"


def topic_of_result(call: ToolCall | None, language: Language) -> str:
    """Tool name and main argument of the call that a result answers."""
    what = clip(" ".join(filter(None, (call.name, main_argument(call.arguments))))) if call else ""
    if language == "zh":
        return f"{what} 的结果" if what else "工具结果"
    return f"result of {what}" if what else "tool result"


def truncated_topic(call: ToolCall | None, chars: int, language: Language) -> str:
    """The topic of a result of which head and tail are left, with its own length."""
    return topic_of_result(call, language) + (f"，原文共 {chars} 个字符" if language == "zh" else f", {chars} characters in full")


def superseded_topic(call: ToolCall | None, language: Language) -> str:
    """The topic of a result that a later one replaces."""
    return topic_of_result(call, language) + ("，后来又有更新的结果" if language == "zh" else ", newer one further on")


def duplicate_topic(call: ToolCall | None, language: Language) -> str:
    """The topic of a result whose text stands again further on."""
    return topic_of_result(call, language) + ("，与后面的结果相同" if language == "zh" else ", same text further on")


def topic_of_text(message: Message, language: Language) -> str:
    """Whose message it was and how it began."""
    who = message.role
    if language == "zh":
        who = {"user": "用户", "assistant": "助手"}.get(who, who)
    words = text_of(message).lstrip()[: 4 * TOPIC_CHARS]
    start = clip(CLAUSE_END.split(words, maxsplit=1)[0])
    quoted = f" “{start}…”" if start else ""
    return f"较早的{who}消息{quoted}" if language == "zh" else f"earlier {who} message{quoted}"


def topic_of_argument(chars: int, language: Language) -> str:
    """How long a text was in the arguments of a call."""
    return f"{chars} 个字符的参数" if language == "zh" else f"argument of {chars} characters"


def topic_of_media(part: Mapping[str, Any], language: Language) -> str:
    """Kind of a media part, and its file name or media type where it tells one."""
    kind = str(part.get("type", "")).removeprefix("input_").removesuffix("_url") or "media"
    detail = clip(_media_detail(part))
    name = {"image": "图片", "audio": "音频", "file": "文件", "video": "视频"}.get(kind, kind) if language == "zh" else kind
    return f"较早的{name} {detail}".rstrip() if language == "zh" else f"earlier {name} {detail}".rstrip()


def _media_detail(part: Mapping[str, Any]) -> str:
    body = part.get(str(part.get("type")))
    body = body if isinstance(body, dict) else {}
    for key in ("filename", "format", "url"):
        value = body.get(key)
        if isinstance(value, str):
            return value[5:].split(";")[0].split(",")[0][:40] if value.startswith("data:") else value.split("?")[0]
    return ""


def main_argument(arguments: str) -> str:
    """The value of the argument that tells best what a call was about; "" if none does."""
    try:
        value = jsontext.decode(arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        return ""
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    named = [value[key] for key in MAIN_ARGUMENTS if key in value]
    return next((str(v) for v in (*named, *value.values()) if isinstance(v, (str, int)) and str(v).strip()), "")


def clip(text: str) -> str:
    """A topic in one short line, without characters of the marker's own and without anything that offers a tool."""
    line = " ".join(FRAME.sub(" ", text[: 4 * TOPIC_CHARS]).split())
    offer = OFFER.search(line)
    line = line[: offer.start()] if offer else line
    return line[: cuts.before(line, TOPIC_CHARS)].strip(" ,:，、")
