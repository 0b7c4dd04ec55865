"""What is asked of a summarizer, whether its answer may stand for the originals, and what is added so that nothing of weight is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from ctxproxy.core.extractive import CountText, extract, squeeze
from ctxproxy.core.facts import CHUNK, EDGES, rank
from ctxproxy.core.frames import is_filler, is_frame, without_frames
from ctxproxy.core.language import Language, han_share
from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import Message, Tip, text_of, tool_calls
from ctxproxy.core.prompts import WORDINGS, Prompt, prompt, rendered
from ctxproxy.core.records import Summary
from ctxproxy.core.standing_rules import in_force

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
LABELS: dict[Language, tuple[str, str]] = {"en": ("Rules and limits, word for word:", "Exact values: "), "zh": ("规则与限制（原文）：", "精确值：")}


@dataclass(frozen=True)
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
    pins: tuple[str, ...] = ()
    """Texts that are kept word for word beside the summary."""
    forgotten: frozenset[Tip] = frozenset()
    """What was forgotten when this was gathered."""
    memo: Memo = field(default=no_memo, compare=False, repr=False)
    """What is read out of messages is remembered there."""

    @cached_property
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


SUMMARIES_WORTH = 8
"""A model is asked for another summary when this many times what it may write is not told yet."""
UNTOLD_SHARE, FIRST_UNTOLD_SHARE = 0.75, 0.25
"""Of the limit: or when this much is; small windows fill too often to ask each time. The second where nothing is told yet."""

# --- asking ------------------------------------------------------------------------------------------------------------------------


def is_worth_a_call(untold_tokens: int, limit: int, max_tokens: int, *, first: bool) -> bool:
    """Whether so much has not been told by a summary yet that a model is asked for one of at most `max_tokens`."""
    return untold_tokens >= min((FIRST_UNTOLD_SHARE if first else UNTOLD_SHARE) * limit, SUMMARIES_WORTH * max_tokens)


def reads_again(told_messages: int, messages: int) -> bool:
    """Whether a summary is made from the originals again, not from the one that tells the first of them: each time that a conversation has
    grown fourfold, so that it does not drift, and reading costs no more than a third of the whole beside (a geometric series).
    """
    return (messages.bit_length() + 1) // 2 > (told_messages.bit_length() + 1) // 2


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
    best = extract(need.covered, room * (MAX_CALLS - 2), count_text, need.language, memo=need.memo)
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
PARTED = re.compile(r"[^\w./:@#-]|[^\x00-\x7f]")
"""What a value holds that is more than one word of a text: a date, an amount, an address in brackets."""


def verify(draft: Draft, need: Need, count_text: CountText) -> Verdict:
    """Whether a draft is a summary: whole, no refusal, no echo, no nonsense, smaller than what it covers, in the right script."""
    text = without_frames(draft.text)
    size = count_text(text)
    covered = _tokens_up_to(max(size, FEW_TOKENS), need, count_text)
    checks = (
        (draft.calls_tools, "calls a tool"),
        (draft.finish_reason not in FINE_ENDS, f"ended by {draft.finish_reason if draft.finish_reason in NAMED_ENDS else 'an unknown reason'}"),
        (not text, "empty"),
        (len(text) <= REFUSAL_CHARS and REFUSAL.match(text.lower()) is not None, "a refusal"),
        (covered > FEW_TOKENS and _units(text) < LEAST_UNITS, "says nothing"),
        (_repeats_itself(text), "repeats itself"),
        (_echoes(text, need), "an echo"),
        (size >= covered, "no smaller than what it covers"),
        (_wrong_script(text, need), "in the wrong script"),
    )
    return next((Verdict(False, reason) for failed, reason in checks if failed), Verdict(True))


def _tokens_up_to(most: int, need: Need, count_text: CountText) -> int:
    """The tokens of what is covered, or of so much of it that they are more than `most`: to count all takes longer than to summarize it."""
    earlier = [need.previous.text] if need.previous else []
    tokens = 0
    for text in chain(earlier, chain.from_iterable(map(_texts, need.covered))):
        tokens += count_text(text)
        if tokens > most:
            break
    return tokens


def _texts(message: Message) -> Iterator[str]:
    yield text_of(message)
    for call in tool_calls(message):
        yield call.arguments
        yield call.name


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
    return " ".join(text.split()).lower()


def _wrong_script(text: str, need: Need) -> bool:
    """A Chinese conversation told without Chinese, or another one in Chinese (field case 072)."""
    share = han_share(text)
    if need.language == "zh":
        return share < WRONG_SCRIPT
    return share > 1 - WRONG_SCRIPT and han_share("\n".join(text_of(m)[:1000] for m in need.covered)) < WRONG_SCRIPT


# --- completing --------------------------------------------------------------------------------------------------------------------


def complete(text: str, need: Need, count_text: CountText) -> str:
    """A summary with the user's rules and the weightiest exact values that it lacks appended, in bounded shares of its size."""
    rules_label, values_label = LABELS[need.language]
    text = without_frames(text)
    held = level(text)
    kept = fitting([rule for rule in in_force(need.covered, need.memo) if level(rule) not in held], int(need.max_tokens * RULES_SHARE), count_text)
    lines = [rules_label, *(f"- {rule}" for rule in kept)] if kept else []
    held = level("\n".join((held, *kept)))
    share = VALUES_SHARE if any(tool_calls(m) for m in need.covered) else BARE_VALUES_SHARE
    missing = not_in(rank(need.covered, need.memo), held)
    chosen = fitting(missing, int(need.max_tokens * share), count_text)
    lines += [values_label + "; ".join(chosen)] if chosen else []
    return "\n".join([text, *lines] if text else lines)


def not_in(values: Iterable[str], text: str) -> Iterator[str]:
    """The values that do not stand in a text as a whole: A-10 is not in "A-101"."""
    low = text.lower()
    each = " ".join(set(low.split()))
    held = {word.strip(EDGES) for word in CHUNK.findall(each)}
    for value in values:
        own = value.lower()
        if own not in held and not (PARTED.search(own) and (_is_phrase_in(low, own) if " " in own else own in each)):
            yield value


def _is_phrase_in(text: str, phrase: str) -> bool:
    """Whether words stand in a text one after the other, whatever blanks are between them."""
    return phrase in text or re.search(r"\s+".join(map(re.escape, phrase.split())), text) is not None


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
