"""What is answered to commands, English and Chinese. Each answer begins with the word by which it is told again in a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ctxproxy.core.commands import MARK
from ctxproxy.core.fates import fates
from ctxproxy.core.language import Language
from ctxproxy.core.memory_points import told
from ctxproxy.core.messages import Message, text_of, tool_calls
from ctxproxy.core.planned import Plan, as_decided
from ctxproxy.core.points import MemoryPoint
from ctxproxy.core.records import Pin, WindowBelief
from ctxproxy.core.situation import Situation, base_transcript
from ctxproxy.core.why import Why

SHOWN_CHARS = 200
"""Of a text that is named in an answer."""
SHOWN_FACTS = 40
SHOWN_MESSAGES = 5
"""Of those that hold a phrase."""
_SAID: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "no_session": (
            "Commands are about a conversation, and this request belongs to none. Say something first, or name the session with the header {header}.",
            "命令针对某个会话，而此请求不属于任何会话。请先说点什么，或用请求头 {header} 指定会话。",
        ),
        "context": ("Context of {session}", "会话 {session} 的上下文"),
        "messages": (
            "- messages: {total} in {turns} turns ({roles}), {chars} characters",
            "- 消息：{total} 条，{turns} 轮（{roles}），{chars} 个字符",
        ),
        "system": ("- system messages: {total}, always sent", "- 系统消息：{total} 条，始终发送"),
        "tokens": ("- tokens: {whole} in all, {sent} as it is sent now", "- 词元：全部 {whole}，当前实际发送 {sent}"),
        "budget": (
            "- budget: {budget} of a window of {window} ({source}), {reserve} kept for the reply; compaction begins at {trigger} of history",
            "- 预算：{budget}，窗口 {window}（{source}），为回复保留 {reserve}；历史达到 {trigger} 时开始压缩",
        ),
        "untouched": ("- compacted: nothing, all messages are sent as they came", "- 压缩：无，所有消息原样发送"),
        "touched": (
            "- compacted: {compacted} messages shortened, {summarized} summarized, {dropped} left out; the log keeps all of them",
            "- 压缩：{compacted} 条缩短，{summarized} 条已摘要，{dropped} 条未发送；日志保留全部内容",
        ),
        "kept": ("- pins: {pins} · preset: {preset} · keys of its own: {own}", "- 固定文本：{pins} · 预设：{preset} · 会话自有设置：{own}"),
        "cleared": (
            "Cleared: none of the {messages} messages so far is sent any more. The log keeps them. System messages and pins stay.",
            "已清除：此前的 {messages} 条消息不再发送，日志仍保留。系统消息和固定文本不受影响。",
        ),
        "nothing_to_clear": ("There is nothing to clear yet.", "还没有可清除的内容。"),
        "compacted": (
            "Compacted: {turns_before} turns with {before} tokens are sent as {turns_after} turns with {after} tokens ({actions}).",
            "已压缩：{turns_before} 轮、{before} 个词元，现发送为 {turns_after} 轮、{after} 个词元（{actions}）。",
        ),
        "not_compacted": (
            "Nothing to compact: {turns_before} turns with {before} tokens stay as they are.",
            "无可压缩内容：{turns_before} 轮、{before} 个词元保持不变。",
        ),
        "config": (
            "Settings of this session (`/config <key> <value>` changes one, `default` takes it back):",
            "本会话的设置（`/config <键> <值>` 修改，`default` 恢复）：",
        ),
        "set": ("{key} is {value} for this session from the next request on.", "从下一个请求起，本会话的 {key} 为 {value}。"),
        "reset": ("{key} of this session is taken back; {value} counts now ({source}).", "本会话的 {key} 已恢复；当前值为 {value}（{source}）。"),
        "unknown_key": (
            "There is no key {key} that a session can have of its own.{nearest} Keys: {keys}.",
            "会话没有可单独设置的键 {key}。{nearest}可用的键：{keys}。",
        ),
        "nearest": (" Did you mean {nearest}?", "是否指 {nearest}？"),
        "bad_value": ("{key} was not changed: {reason}", "{key} 未修改：{reason}"),
        "pinned": (
            "Pinned as number {number}: the model reads it word for word from the next request on, also after compaction.",
            "已固定，编号 {number}：从下一个请求起，模型会逐字读到它，压缩之后也是如此。",
        ),
        "pin_too_long": (
            "Not pinned: with it, pins would take {tokens} of {limit} tokens; {most} are allowed.",
            "未固定：加上它，固定文本将占 {limit} 个词元中的 {tokens} 个，最多允许 {most} 个。",
        ),
        "pins": ("Pinned texts:", "固定文本："),
        "no_pins": ("There are no pinned texts.", "没有固定文本。"),
        "facts": ("What is known from what was said here:", "从对话中得知："),
        "facts_of_user": ("What is known from all that this user said:", "从该用户的全部对话中得知："),
        "no_facts": ("Nothing is noted yet.", "尚无记录。"),
        "no_such_facts": ("Nothing that is noted holds “{text}”.", "没有哪条记录包含“{text}”。"),
        "more_facts": ("… and {more} more; `/facts <text>` looks for some", "……还有 {more} 条；用 `/facts <文本>` 查找"),
        "forgotten": (
            "Forgotten: {messages} messages, {pins} pins and {facts} facts that hold “{text}” are never sent again. The log keeps the messages.",
            "已遗忘：含有“{text}”的 {messages} 条消息、{pins} 条固定文本和 {facts} 条要点不再发送。日志仍保留这些消息。",
        ),
        "not_found": ("Nothing holds “{text}”: nothing was forgotten.", "没有内容含有“{text}”：未遗忘任何内容。"),
        "why": (
            "“{text}” stands in {count} of the {searched} messages of this session.",
            "“{text}”出现在本会话 {searched} 条消息中的 {count} 条里。",
        ),
        "in_prompt": ("The next request carries it.", "下一个请求会带上它。"),
        "not_in_prompt": ("The next request does not carry it.", "下一个请求不会带上它。"),
        "held": (
            "- {role}, turn {turn}: {excerpt}\n  now {state}: {why}; the original is under the marker {marker}",
            "- {role}，第 {turn} 轮：{excerpt}\n  当前 {state}：{why}；原文标记 {marker}",
        ),
        "stands_in": ("  in its place: {excerpt}", "  代替它的是：{excerpt}"),
        "bring_back": ("To have it back: `/pin {text}`", "要让它回来：`/pin {text}`"),
        "bad_text": ("That text {reason}; give some words that were said.", "该文本无法查找（{reason}）；请给出说过的几个词。"),
        "needs_text": ("`{command}` needs a text: `{command} <text>`.", "`{command}` 需要文本：`{command} <文本>`。"),
    }
)


@dataclass(frozen=True, slots=True)
class Standing:
    """A session as the next request would meet it."""

    session: str
    situation: Situation
    plan: Plan
    belief: WindowBelief
    own: int
    """How many keys it has of its own."""


def say(name: str, language: Language, **values: object) -> str:
    """One of the texts, filled in."""
    return _SAID[name][language == "zh"].format(**values)


def answer(*lines: str) -> str:
    """The text of an answer."""
    return f"{MARK} " + "\n".join(lines)


def context_lines(at: Standing, language: Language) -> list[str]:
    """What `/context` tells."""
    s, plan = at.situation, at.plan
    history, budget = s.reconciled.history, plan.budget
    states = Counter(fate.state for fate in fates(s, plan))
    roles = Counter(message.role for message in history)
    named = ", ".join(f"{role} {count}" for role, count in sorted(roles.items())) or "-"
    touched = "untouched" if states["sent"] == len(history) else "touched"
    return [
        say("context", language, session=at.session),
        say("messages", language, total=len(history), turns=roles["user"], roles=named, chars=sum(map(_chars, (*s.leading, *history)))),
        *([say("system", language, total=len(s.leading))] if s.leading else []),
        say("tokens", language, whole=budget.fixed + sum(s.counts), sent=plan.tokens_sent),
        say(
            "budget",
            language,
            budget=budget.prompt_tokens,
            window=at.belief.window,
            source=at.belief.source,
            reserve=budget.reserve,
            trigger=budget.trigger,
        ),
        say(touched, language, compacted=states["compacted"], summarized=states["summarized"], dropped=states["dropped"]),
        say("kept", language, pins=len(s.pins), preset=s.policy.preset, own=at.own),
    ]


def compacted_line(s: Situation, after: Plan, language: Language) -> str:
    """What `/compact` tells: turns and tokens as they were sent, and as they are sent now."""
    before = as_decided(s, base_transcript(s))
    actions = ", ".join(f"{name} {count}" for name, count in after.actions)
    return say(
        "compacted" if after.transcript.tokens < before.tokens else "not_compacted",
        language,
        turns_before=len(before.turns),
        before=s.budget.fixed + before.tokens,
        turns_after=len(after.transcript.turns),
        after=after.tokens_sent,
        actions=actions,
    )


def pin_lines(pins: Sequence[Pin], language: Language) -> list[str]:
    """What `/pins` tells."""
    return [say("pins", language), *(f"{pin.number}. {short(pin.text)}" for pin in pins)] if pins else [say("no_pins", language)]


def fact_lines(facts: Sequence[MemoryPoint], text: str, language: Language, *, of_user: bool) -> list[str]:
    """What `/facts` tells: the newest of what is in force and holds a text; ids, paths and links only where one is asked for."""
    low = text.casefold()
    points = [one.point for one in facts if low in f"{one.point.key}\n{one.point.value}".casefold()]
    shown = [point for point in points if text or point.kind != "anchor"]
    if not shown:
        return [say("no_such_facts", language, text=short(text)) if text else say("no_facts", language)]
    lines = [f"- {short(told(point))}" for point in shown[:SHOWN_FACTS]]
    more = len(shown) - len(lines)
    return [say("facts_of_user" if of_user else "facts", language), *lines, *([say("more_facts", language, more=more)] if more else [])]


def why_lines(why: Why, language: Language) -> list[str]:
    """What `/why` tells: the newest of the messages that hold the phrase, and how it comes back."""
    count = len(why.held) + why.left_off
    lines = [say("why", language, text=short(why.phrase), count=count, searched=why.searched)]
    lines += [say("in_prompt" if why.prompt else "not_in_prompt", language)] if count else []
    for one in why.held[-SHOWN_MESSAGES:]:
        told = {"excerpt": short(one.found.excerpt), "state": one.state, "why": one.why, "marker": one.marker}
        lines.append(say("held", language, role=one.role, turn=one.turn, **told))
        lines += [say("stands_in", language, excerpt=short(one.stands_in.excerpt))] if one.stands_in else []
    return [*lines, *([say("bring_back", language, text=why.pin)] if why.pin else [])]


def short(text: str) -> str:
    """A text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"


def _chars(message: Message) -> int:
    return len(text_of(message)) + sum(len(call.arguments) for call in tool_calls(message))
