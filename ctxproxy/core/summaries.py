"""What is asked of a summarizer, whether its answer may stand for the originals, and what is added so that nothing of weight is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxproxy.core.extractive import CountText, extract, squeeze
from ctxproxy.core.facts import rank, rules
from ctxproxy.core.frames import is_filler, is_frame, without_frames
from ctxproxy.core.language import Language, han_share
from ctxproxy.core.messages import Message, Tip, text_of, tool_calls
from ctxproxy.core.prompts import WORDINGS, Prompt, prompt, rendered
from ctxproxy.core.records import Summary

MAX_CALLS = 12
"""For one summary, the merging one included (field case 092)."""
SAFETY = 0.92
"""Of a window: our count and the upstream's differ by some percent."""
ANSWER_SHARE = 0.25
"""Of a small window: room for the answer."""
LEAST_ROOM = 100
"""Tokens of transcript a call; below this, no window is worth asking."""
CAPS_CHARS = (12_000, 4_000, 1_500, 500)
"""How much of one message goes in, tried in turn until all fits into the calls."""
RULES_SHARE, VALUES_SHARE, BARE_VALUES_SHARE = 0.3, 0.15, 0.04
"""Of the summary's tokens, at most: rules word for word; exact values; these where no tool is called (a number says little without its sentence)."""
LEAST_PIECE = 5
"""Tokens; where less is left, no further one is tried."""
PREVIOUS_SHARE = 0.4
"""Of an extractive summary: what an earlier summary may take."""
LABELS: dict[Language, tuple[str, str]] = {"en": ("Rules and limits, word for word:", "Exact values: "), "zh": ("规则与限制（原文）：", "精确值：")}


@dataclass(frozen=True, slots=True)
class Need:
    """A summary that is wanted: of the history up to `tip`, told by these originals and, for what lies before them, by an earlier summary."""

    tip: Tip
    messages: tuple[Message, ...]
    language: Language
    max_tokens: int
    previous: Summary | None = None
    start: float = 0.0
    """When the first of the messages came, seconds since the epoch."""
    end: float = 0.0

    @property
    def covered(self) -> tuple[Message, ...]:
        """The messages that may be summarized: not our own frames, not those that the client keeps out."""
        return tuple(m for m in self.messages if not m.directives.never_summarize and not is_frame(m) and not is_filler(m))


class Draft(NamedTuple):
    """A summarizer's answer."""

    text: str
    finish_reason: str | None = "stop"
    calls_tools: bool = False


class Verdict(NamedTuple):
    """Whether a draft may stand for the originals, else why not, in a few words for the log."""

    ok: bool
    reason: str = ""


# --- asking ------------------------------------------------------------------------------------------------------------------------


def requests(need: Need, window_tokens: int, count_text: CountText) -> list[Prompt]:
    """The calls that read all of it, one if it fits, each within the window and fewer than `MAX_CALLS`; [] if the window is too small."""
    answer = min(need.max_tokens, int(window_tokens * ANSWER_SHARE))
    previous = _carried(need, window_tokens, count_text)
    bare = prompt("", need.language, answer, previous=previous)
    room = int(window_tokens * SAFETY) - answer - count_text(bare.system) - count_text(bare.user)
    if room < LEAST_ROOM or not need.covered:
        return []
    chunks = _chunks(need, room, count_text)
    return [prompt(chunk, need.language, answer, previous=previous if n == 0 else "") for n, chunk in enumerate(chunks)]


def _carried(need: Need, window_tokens: int, count_text: CountText) -> str:
    return squeeze(without_frames(need.previous.text), int(window_tokens * ANSWER_SHARE), count_text) if need.previous else ""


def _chunks(need: Need, room: int, count_text: CountText) -> list[str]:
    for most_chars in CAPS_CHARS:
        chunks = _packed(rendered(need.covered, need.language, most_chars), room, count_text)
        if len(chunks) < MAX_CALLS:
            return chunks
    best = extract(need.covered, room * (MAX_CALLS - 2), count_text, need.language)
    return _packed(best.splitlines(), room, count_text)[: MAX_CALLS - 1]


def _packed(blocks: Sequence[str], room: int, count_text: CountText) -> list[str]:
    """Neighbouring blocks joined as long as they fit, one that does not fit alone in slices."""
    chunks: list[list[str]] = []
    left = 0
    for block in blocks:
        for piece, tokens in _slices(block, room, count_text):
            if tokens > left or not chunks:
                chunks.append([])
                left = room
            chunks[-1].append(piece)
            left -= tokens
    return ["\n".join(chunk) for chunk in chunks]


def _slices(block: str, room: int, count_text: CountText) -> list[tuple[str, int]]:
    tokens = count_text(block) + 1
    if tokens <= room or len(block) < 2:
        return [(block, tokens)]
    middle = len(block) // 2
    return _slices(block[:middle], room, count_text) + _slices(block[middle:], room, count_text)


def merging(need: Need, parts: Sequence[str], window_tokens: int, count_text: CountText) -> Prompt | None:
    """The call that joins partial summaries; None if they do not fit into the window: then `joined` has to do."""
    answer = min(need.max_tokens, int(window_tokens * ANSWER_SHARE))
    call = prompt("\n\n".join(parts), need.language, answer, merging=True)
    fits = count_text(call.system) + count_text(call.user) + answer <= window_tokens * SAFETY
    return call if fits else None


def joined(need: Need, parts: Sequence[str], count_text: CountText) -> str:
    """Partial summaries one after the other, within the summary's size."""
    return squeeze("\n".join(parts), need.max_tokens, count_text)


# --- judging -----------------------------------------------------------------------------------------------------------------------

REFUSAL = re.compile(
    r"\W*(?:(?:i['’]m|i am|we['’]re)? ?(?:very |so |really )?(?:sorry|afraid)\b"
    r"|(?:i|we) (?:can(?:no|['’])?t|cannot|am unable|['’]m unable|won['’]t|am not able|do not have|don['’]t have|must decline)"
    r"|as an? (?:ai|language)|unfortunately,? i\b|there(?:['’]s| is) (?:no|nothing) ?(?:conversation|content|text|transcript|history|to summ)"
    r"|no (?:prior |previous |earlier )?(?:conversation|history|transcript|content)|(?:please|could you) (?:provide|share|paste)"
    r"|summari[sz]ation failed|(?:an )?error (?:generating|while|occurred)"
    r"|抱歉|很抱歉|对不起|我无法|无法(?:提供|总结|生成)|我不能|作为(?:一个|一名)?(?:人工智能|ai|语言模型)|没有(?:可|任何)?(?:供总结的)?(?:对话|内容|历史)|请(?:提供|给出))"
)
REFUSAL_CHARS = 400
"""A longer text that begins with an apology still holds something."""
FINE_ENDS = frozenset({None, "stop", "eos", "end_turn", "stop_sequence", "STOP", ""})
NAMED_ENDS = frozenset({"length", "content_filter", "tool_calls", "function_call", "max_tokens", "error"})
"""Those that a log may name: an upstream can write anything there."""
FEW_TOKENS = 200
"""What is shorter than this may have a summary of a word or two."""
LEAST_UNITS = 3
ECHO_CHARS = 40
WRONG_SCRIPT = 0.15
BLANKS = re.compile(r"\s+")


def verify(draft: Draft, need: Need, count_text: CountText) -> Verdict:
    """Whether a draft is a summary: whole, no refusal, no echo, no nonsense, smaller than what it covers, in the right script."""
    text = without_frames(draft.text)
    covered = sum(_tokens(m, count_text) for m in need.covered) + (count_text(need.previous.text) if need.previous else 0)
    checks = (
        (draft.calls_tools, "calls a tool"),
        (draft.finish_reason not in FINE_ENDS, f"ended by {draft.finish_reason if draft.finish_reason in NAMED_ENDS else 'an unknown reason'}"),
        (not text, "empty"),
        (len(text) <= REFUSAL_CHARS and REFUSAL.match(text.lower()) is not None, "a refusal"),
        (covered > FEW_TOKENS and _units(text) < LEAST_UNITS, "says nothing"),
        (_repeats_itself(text), "repeats itself"),
        (_echoes(text, need), "an echo"),
        (count_text(text) >= covered, "no smaller than what it covers"),
        (_wrong_script(text, need), "in the wrong script"),
    )
    return next((Verdict(False, reason) for failed, reason in checks if failed), Verdict(True))


def _tokens(message: Message, count_text: CountText) -> int:
    return count_text(text_of(message)) + sum(count_text(call.arguments) + count_text(call.name) for call in tool_calls(message))


def _units(text: str) -> int:
    """Words, two Chinese characters counted as one."""
    han = len(re.findall("[\u3400-\u9fff]", text))
    return han // 2 + len(re.findall(r"[^\W\u3400-\u9fff]+", text))


def _repeats_itself(text: str) -> bool:
    words = text.split() if " " in text else list(text)
    groups = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
    return len(groups) > 60 and len(set(groups)) < 0.3 * len(groups)


def _echoes(text: str, need: Need) -> bool:
    """The conversation's own last words, or our own instructions, given back."""
    said = level(text)
    last = [level(text_of(message)) for message in need.covered[-2:]]
    if any(said == own or (len(said) > ECHO_CHARS and said in own) for own in last if own):
        return True
    lines = [line for wording in WORDINGS.values() for line in (*wording.system.splitlines(), wording.closing)]
    return sum(level(line)[:ECHO_CHARS] in said for line in lines if len(line) > ECHO_CHARS) >= 2


def level(text: str) -> str:
    """A text without differences of case and blanks: what "is it in there" is asked of."""
    return BLANKS.sub(" ", text).strip().lower()


def _wrong_script(text: str, need: Need) -> bool:
    """A Chinese conversation told without Chinese, or another one in Chinese (field case 072)."""
    share = han_share(text)
    if need.language == "zh":
        return share < WRONG_SCRIPT
    return share > 1 - WRONG_SCRIPT and han_share("\n".join(text_of(m)[:1000] for m in need.covered)) < WRONG_SCRIPT


# --- completing --------------------------------------------------------------------------------------------------------------------


class _Known(NamedTuple):
    """What a summary may not lose, weightiest values first, and how many tokens they may take."""

    rules: list[str]
    values: list[str]
    rules_tokens: int
    values_tokens: int


def _known(need: Need) -> _Known:
    share = VALUES_SHARE if any(tool_calls(m) for m in need.covered) else BARE_VALUES_SHARE
    values = [fact.text for fact in rank(need.covered)]
    return _Known(rules(need.covered), values, int(need.max_tokens * RULES_SHARE), int(need.max_tokens * share))


def complete(text: str, need: Need, count_text: CountText) -> str:
    """A summary with the user's rules and the weightiest exact values that it lacks appended, in bounded shares of its size."""
    return _completed(text, _known(need), need.language, count_text)


def _completed(text: str, known: _Known, language: Language, count_text: CountText) -> str:
    rules_label, values_label = LABELS[language]
    text = without_frames(text)
    held = level(text)
    kept = fitting([rule for rule in known.rules if level(rule) not in held], known.rules_tokens, count_text)
    lines = [rules_label, *(f"- {rule}" for rule in kept)] if kept else []
    held = level("\n".join((held, *kept)))
    missing = (value for value in known.values if not _stands_in(held, value.lower()))
    chosen = fitting(missing, known.values_tokens, count_text)
    lines += [values_label + "; ".join(chosen)] if chosen else []
    return "\n".join([text, *lines] if text else lines)


def _stands_in(held: str, value: str) -> bool:
    """Whether a value stands in a text as a whole: A-10 is not in "A-101"."""
    at = held.find(value)
    while at >= 0:
        end = at + len(value)
        if not (held[at - 1 : at].isalnum() or held[end : end + 1].isalnum()):
            return True
        at = held.find(value, at + 1)
    return False


def fitting(texts: Iterable[str], most_tokens: int, count_text: CountText) -> list[str]:
    """The texts, in order, that fit one after the other; one that is too long is passed over."""
    out: list[str] = []
    for text in texts:
        cost = count_text(text) + 2
        if cost <= most_tokens:
            out.append(text)
            most_tokens -= cost
        elif most_tokens < LEAST_PIECE:
            break
    return out


def stand_in(need: Need, count_text: CountText, earlier: str = "") -> str:
    """A summary without a model, at most `max_tokens` long: what an `earlier` one says, the best sentences, rules, exact values."""
    if not earlier and need.previous:
        earlier = need.previous.text
    told = squeeze(without_frames(earlier), int(need.max_tokens * PREVIOUS_SHARE), count_text) if earlier else ""
    room = need.max_tokens - count_text(told)
    known = _known(need)
    facts = _completed("", known, need.language, count_text)
    best = extract(need.covered, max(0, room - count_text(facts) - 2), count_text, need.language)
    return squeeze("\n".join(part for part in (told, _completed(best, known, need.language, count_text)) if part), need.max_tokens, count_text)
