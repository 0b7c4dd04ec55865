"""The built-in model: answers only from what it was sent, so that one can see what it still knows. Deterministic, no network.

It finds the sentences of the prompt that fit the last question best, calls tools by name, sums a conversation up when asked to, and
says so when it does not find something. Must not know of HTTP.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

from ctxproxy.core import jsontext
from ctxproxy.core.extractive import extract, squeeze
from ctxproxy.core.language import HAN, han_share, language_of
from ctxproxy.core.messages import Message, ToolCall, text_of, tool_calls
from ctxproxy.core.passages import STOPWORDS
from ctxproxy.core.sentences import split
from ctxproxy.upstream.demo_rules import CountText, Refused, message_tokens, overflow, reply_limit, tool_tokens, wrong_shape
from ctxproxy.upstream.demo_tools import filled, wanted

PRIMING_TOKENS = 3
SUMMARY_TOKENS = 400
LEAST_SUMMARY_TOKENS = 40
RESULT_TOKENS = 120
NOTE_CHARS = 80
FOUND = 0.4
"""The share of a question's weight that a sentence must hold to count as an answer to it."""
NEARLY = 0.8
"""A second sentence is told as well if it is this good, measured by the best."""

_SUMMARIZE = re.compile(
    r"\b(?:summari[sz]e|condense|(?:write|create|produce|provide|give|make|generate)\b[^.\n]{0,60}\bsummary)\b|总结|概括|(?:生成|写|给出|提供|做|压缩)[^。\n]{0,20}摘要|压缩.{0,8}对话",
    re.IGNORECASE,
)
_INSTRUCTION_CHARS = 600
_FENCE = re.compile(r"([=`~\"'#*-])\1{2,}\s*")
_ASKS = re.compile(
    r"[?？]|^\s*(?:what|which|who|whom|whose|when|where|why|how|is|are|do|does|did|can|could|tell me|remind me|recall|list|repeat)\b"
    r"|什么|哪|谁|多少|几|吗|呢|怎么|为何|是否|记得|告诉我",
    re.IGNORECASE,
)
_ENDS_ASKING = re.compile(r"[?？]\W*$|[吗呢][。.]?$")
_OWN = re.compile(r"^(?:From what I was sent|From the tool|In what I was sent|我收到的内容|工具的结果|发给我的内容)")
_QUOTE = re.compile(r"“(.*?)”")
_WORD = re.compile(r"[^\W_]+")
_ROLE_FACTORS = {"assistant": 0.9}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says: text or calls, why it stopped, what it cost."""

    text: str | None
    calls: tuple[ToolCall, ...]
    finish: str
    prompt_tokens: int
    completion_tokens: int


class _Sentence(NamedTuple):
    text: str
    role: str
    message: int


class DemoModel:
    """`windows`: tokens of prompt and reply together, by model name; an unknown name gets the first."""

    def __init__(self, count: CountText, windows: Mapping[str, int]) -> None:
        self._count = count
        self._windows = dict(windows)

    def reply(self, body: Any) -> Reply | Refused:
        """The answer to the body of a chat completion request."""
        if wrong := wrong_shape(body):
            return wrong
        window = self._windows.get(body["model"], next(iter(self._windows.values())))
        functions = tool_tokens(body, self._count)
        prompt = functions + PRIMING_TOKENS + sum(message_tokens(m, self._count) for m in body["messages"])
        if refused := overflow(body, prompt, functions, window):
            return refused
        room = min(reply_limit(body) or window, window - prompt)
        messages = [Message(b"", fields) for fields in body["messages"]]
        if calls := self._calls(body, messages):
            cost = sum(self._count(call.name) + self._count(call.arguments) for call in calls)
            return Reply(None, calls, "tool_calls", prompt, cost)
        text = _formatted(self._answer(messages, room, prompt), body.get("response_format"))
        return self._limited(_stopped(text, body.get("stop")), room, prompt)

    def _calls(self, body: Mapping[str, Any], messages: Sequence[Message]) -> tuple[ToolCall, ...]:
        last = messages[-1]
        return wanted(body, text_of(last)) if last.role == "user" else ()

    def _answer(self, messages: Sequence[Message], room: int, prompt: int) -> str:
        if messages[-1].role == "tool":
            return self._from_results(messages)
        at = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user"), len(messages) - 1)
        question = text_of(messages[at])
        if _asks_for_summary(messages, question):
            return self._summary(messages, at, min(room, SUMMARY_TOKENS))
        zh = han_share(question) > 0.3
        if not _ASKS.search(question):
            return ("记下了：{}" if zh else "Noted: {}").format(_opening(question))
        found = _best(question, list(_sentences(messages, at)))
        if found:
            told = [_quoted(one, len(messages), zh=zh) for one in found]
            return ("我收到的内容里有：{}" if zh else "From what I was sent: {}").format(" ".join(told))
        if zh:
            return f"发给我的内容里（{len(messages)} 条消息，{prompt} 个 token）找不到这一点。"
        return f"In what I was sent ({len(messages)} messages, {prompt} tokens) I do not find that."

    def _from_results(self, messages: Sequence[Message]) -> str:
        """What the newest tool results say to the last user message."""
        first = next(n for n in range(len(messages) - 1, -1, -1) if messages[n].role != "tool") + 1
        names = {call.id: call.name for call in tool_calls(messages[first - 1])}
        question = next((text_of(m) for m in reversed(messages) if m.role == "user"), "")
        told = []
        for message in messages[first:]:
            found = _best(question, [_Sentence(s, "tool", 0) for s in split(text_of(message))])
            said = found[0].text if found else squeeze(text_of(message), RESULT_TOKENS, self._count)
            told.append((names.get(str(message.fields.get("tool_call_id")), ""), said))
        zh = han_share(question) > 0.3
        return "\n".join((f"工具的结果 {name}：{said}" if zh else f"From the tool {name}: {said}") for name, said in told)

    def _summary(self, messages: Sequence[Message], at: int, max_tokens: int) -> str:
        """The sentences of weight of what stands before the request to sum up, or within it if nothing does."""
        before = [m for m in messages[:at] if m.role not in ("system", "developer")]
        if before:
            return extract(before, max_tokens, self._count, language_of(before))
        data = _data(text_of(messages[at]))
        return squeeze(data, min(max_tokens, max(LEAST_SUMMARY_TOKENS, self._count(data) // 2)), self._count)

    def _limited(self, text: str, room: int, prompt: int) -> Reply:
        tokens = self._count(text)
        if tokens <= room:
            return Reply(text, (), "stop", prompt, tokens)
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._count(text[:middle]) <= room else (low, middle - 1)
        return Reply(text[:low], (), "length", prompt, room)


def _asks_for_summary(messages: Sequence[Message], question: str) -> bool:
    """Whether the last user message, or for a call of two messages the system message, tells to sum up."""
    told = [question[:_INSTRUCTION_CHARS], question[-_INSTRUCTION_CHARS:]]
    if len(messages) <= 2:
        told += [text_of(m)[:_INSTRUCTION_CHARS] for m in messages if m.role in ("system", "developer")]
    return any(_SUMMARIZE.search(text) for text in told)


def _data(text: str) -> str:
    """What a request holds to be summed up: what stands between fences, else all but the paragraphs that tell to sum up."""
    lines = text.splitlines()
    fences = [at for at, line in enumerate(lines) if _FENCE.fullmatch(line)]
    if len(fences) > 1:
        return "\n".join(lines[at] for at in range(fences[0], fences[-1]) if at not in fences)
    kept = [p for p in text.split("\n\n") if not (len(p) < _INSTRUCTION_CHARS and _SUMMARIZE.search(p))]
    return "\n\n".join(kept) or text


def _sentences(messages: Sequence[Message], question_at: int) -> Iterator[_Sentence]:
    """All sentences that state something, the model's own quotes without their frame; the question itself last, without what asks."""
    for at, message in enumerate(messages):
        text = text_of(message)
        if message.role == "assistant" and _OWN.match(text):
            text = "\n".join(_QUOTE.findall(text))
        for sentence in split(text):
            if not _ENDS_ASKING.search(sentence) and (at != question_at or not _ASKS.search(sentence)):
                yield _Sentence(sentence, message.role, at)


def _best(question: str, sentences: Sequence[_Sentence]) -> list[_Sentence]:
    """The one or two sentences that hold most of the question's words, rare ones counting more, the newest of equals; [] if none does."""
    asked = _terms(question)
    bags = [_terms(sentence.text) for sentence in sentences]
    seen_in = Counter(term for bag in bags for term in bag & asked)
    weights = {term: log(1 + (len(bags) + 1) / (max(seen_in[term], 1) + 0.5)) for term in asked}
    total = sum(weights.values())
    scored = [
        (sum(weights[term] for term in bag & asked) * _ROLE_FACTORS.get(sentence.role, 1.0), at)
        for at, (bag, sentence) in enumerate(zip(bags, sentences, strict=True))
    ]
    ranked = sorted((pair for pair in scored if pair[0] >= FOUND * total and pair[0] > 0), reverse=True)
    found: dict[str, _Sentence] = {}
    for score, at in ranked:
        if score >= NEARLY * ranked[0][0]:
            found.setdefault(sentences[at].text.lower(), sentences[at])
    return list(found.values())[:2]


def _terms(text: str) -> set[str]:
    """Words in small letters without their plural s, and pairs of neighbouring Chinese characters; words that say nothing are left out."""
    words = {word.lower() for word in _WORD.findall(HAN.sub(" ", text))}
    terms = {word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words - STOPWORDS}
    if not text.isascii():
        pairs = (a + b for a, b in pairwise(text) if HAN.match(a) and HAN.match(b))
        terms |= set(pairs) - STOPWORDS
    return terms


def _quoted(sentence: _Sentence, messages: int, *, zh: bool) -> str:
    if zh:
        return f"“{sentence.text}”（{sentence.role}，第 {sentence.message + 1} 条，共 {messages} 条）"
    return f"“{sentence.text}” ({sentence.role}, message {sentence.message + 1} of {messages})"


def _opening(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= NOTE_CHARS else line[:NOTE_CHARS] + "…"


def _stopped(text: str, stop: Any) -> str:
    for mark in [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []:
        if isinstance(mark, str) and mark:
            text = text.partition(mark)[0]
    return text


def _formatted(text: str, response_format: Any) -> str:
    """The answer as the JSON that `response_format` asks for, if it does."""
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "json_object":
        return jsontext.encode({"answer": text}).decode()
    if kind == "json_schema":
        schema = (response_format.get("json_schema") or {}).get("schema")
        return jsontext.encode(filled(schema, text)).decode()
    return text
