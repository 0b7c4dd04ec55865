"""Which oldest stretch of a prompt gives way to a summary: cut by rule, never by a model's choice (OpenHands' safe cut points).

The newest turns stay as they are if they fit, else fewer of them, else the cut falls inside the one long turn. What is protected, or
kept out by the client, stays where it is and parts the stretch into several spans.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from ctxproxy.core import frames
from ctxproxy.core.language import Language
from ctxproxy.core.messages import SYSTEM_ROLES, Message, Tip, tool_calls
from ctxproxy.core.records import Summary
from ctxproxy.core.transcript import CountMessage, Entry, Span, Transcript, opening

READ_AGAIN_BYTES = 2_000_000
"""About half a second of sentence scoring on one core."""


FRESH_TOKENS = 32
"""A stretch needs this much that no summary tells yet; else the summary would be summarized, again and again."""
ANSWER_TOKENS = 40
"""What an answer may cost more than an acknowledgement of ours, about 12 tokens, and still be the better choice."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What gives way: spans of whole groups, oldest first, never empty."""

    spans: tuple[Span, ...]
    tip: Tip
    """The history message that it reaches up to; "" if nothing in it is one."""


def is_fresh(transcript: Transcript, stretch: Stretch, stage: str) -> bool:
    """Whether there is enough in a stretch but what the stage itself has put there before."""
    return any(_fresh_tokens(transcript, span, stage) >= FRESH_TOKENS for span in stretch.spans)


def _fresh_tokens(transcript: Transcript, span: Span, stage: str) -> int:
    return sum([e.tokens for e in transcript.entries[span.start : span.end] if e.origin != "inserted" or e.stage != stage])


def last_tip(entry: Entry) -> Tip:
    """The newest history message that an entry is or stands in for."""
    return entry.covers[-1] if entry.covers else entry.tip


def read_again(entries: Sequence[Entry], originals: Mapping[Tip, Message]) -> list[Message]:
    """What entries are or stand in for, as it was said, so that a summary is not made of markers and of summaries; where the
    originals are not at hand, or are more than can be read in the time of a request, the entries as they stand.
    """
    if any(entry.covers for entry in entries):
        out = [message for entry in entries for message in _read_again(entry, originals)]
    else:
        out = [originals.get(entry.tip, entry.message) for entry in entries]
    return out if sum([len(message.raw) for message in out]) <= READ_AGAIN_BYTES else [entry.message for entry in entries]


def _read_again(entry: Entry, originals: Mapping[Tip, Message]) -> Sequence[Message]:
    if entry.covers:
        return [originals[tip] for tip in entry.covers] if all(tip in originals for tip in entry.covers) else [entry.message]
    return [originals.get(entry.tip, entry.message)]


def oldest_stretch(transcript: Transcript, keep_turns: int, room: int) -> Stretch | None:
    """The stretch whose removal leaves at most `room` tokens, with the newest `keep_turns` turns kept if that can be; None if there is none."""
    kept = transcript.protected | {i for i, entry in enumerate(transcript.entries) if entry.message.directives.never_summarize}
    staying = list(accumulate([entry.tokens if i in kept else 0 for i, entry in enumerate(transcript.entries)], initial=0))
    before = transcript.sums
    ends = list(_ends(transcript, keep_turns))
    end = next((end for end in ends if before[-1] - before[end] + staying[end] <= room), ends[-1])
    return stretch_to(transcript, end, kept)


def _ends(transcript: Transcript, keep_turns: int) -> Iterator[int]:
    """Where a cut may fall, in the order of preference; the last one is as late as can be."""
    turns = transcript.turns
    for keep in range(min(keep_turns, len(turns) - 1), 0, -1):
        yield turns[-keep].start
    last = turns[-1].start if turns else 0
    yield from (group.start for group in transcript.groups if last <= group.start < transcript.newest.start)
    yield max(transcript.newest.start, 0)


def stretch_to(transcript: Transcript, end: int, kept: frozenset[int]) -> Stretch | None:
    """The spans before `end` without anything that must stay; None if there are none."""
    spans = list(_between(transcript.groups, end, kept))
    if not spans:
        return None
    spans[-1] = _but_its_answer(transcript, spans[-1])
    tips = (last_tip(transcript.entries[i]) for i in range(spans[-1].end - 1, spans[0].start - 1, -1))
    return Stretch(tuple(spans), next((tip for tip in tips if tip), ""))


def _between(groups: Sequence[Span], end: int, kept: Iterable[int]) -> Iterator[Span]:
    """The runs of groups up to `end` that hold none of the kept places."""
    past = bisect_right(groups, end, key=lambda group: group.end)
    blocked = {bisect_right(groups, (at, inf)) - 1 for at in kept if at < end}
    first = 0
    for at in (*sorted(at for at in blocked if at < past), past):
        if first < at:
            yield Span(groups[first].start, groups[at - 1].end)
        first = at + 1


def _but_its_answer(transcript: Transcript, span: Span) -> Span:
    """The span without a short answer at its end that a user message follows: it serves the frame as the assistant's side, in the
    assistant's own words, where else an acknowledgement would have to be made up.
    """
    at = span.end - 1
    if at <= span.start or span.end >= len(transcript.entries):
        return span
    last, before, after = transcript.entries[at], transcript.entries[at - 1].message.role, transcript.entries[span.end].message.role
    plain = last.message.role == "assistant" and last.origin == "original" and not tool_calls(last.message)
    fits = last.tokens <= ANSWER_TOKENS and before != "assistant" and after == "user"
    return Span(span.start, at) if plain and fits else span


def framed(transcript: Transcript, span: Span, text: str, language: Language) -> tuple[Message, ...]:
    """What stands in place of a span: a frame of this text, so that roles still alternate with its neighbours, whatever they are."""
    before, after = _neighbours(transcript, span)
    frame = frames.said("assistant" if before == "user" else "user", text)
    if before != "user":
        return (frame, frames.acknowledgement(language)) if after == "user" else (frame,)
    if after == "assistant":
        return _carried(transcript, span, text, language) or (frame, frames.gap("user", language))
    return (frame,)


def bridged(transcript: Transcript, span: Span, language: Language, count: CountMessage, room: int, *, later: bool) -> tuple[Message, ...]:
    """What stands in place of a span that the frame elsewhere tells of: as little as keeps the roles in turn.

    `later`, after the frame, its last group stays in short, if that takes less than `room` tokens.
    """
    before, after = _neighbours(transcript, span)
    if later and before == "user" and after == "assistant":
        short = _carried(transcript, span, frames.WORDINGS[language].steps, language)
        return short if sum(map(count, short)) < room else ()
    if before == after and before in ("user", "assistant"):
        return (frames.gap("assistant" if before == "user" else "user", language),)
    opened_by_user = not before and opening(transcript.entries) == "user"
    return (frames.gap("user", language),) if opened_by_user and after == "assistant" else ()


def _neighbours(transcript: Transcript, span: Span) -> tuple[str, str]:
    """The roles before and behind a span, system messages not counted; "" where there is none."""
    roles = transcript.roles
    before = next((role for role in reversed(roles[: span.start]) if role not in SYSTEM_ROLES), "")
    return before, next((role for role in roles[span.end :] if role not in SYSTEM_ROLES), "")


def _carried(transcript: Transcript, span: Span, text: str, language: Language) -> tuple[Message, ...]:
    """The last group of a span, shortened, with a text in it; () if it is no assistant's."""
    group = next(group for group in reversed(transcript.groups) if group.end <= span.end)
    messages = [entry.message for entry in transcript.entries[group.start : group.end]]
    return frames.carried(messages, text, language) if messages[0].role == "assistant" else ()


def tokens_of(transcript: Transcript, spans: Iterable[Span]) -> int:
    up_to = transcript.sums
    return sum(up_to[max(span.end, span.start)] - up_to[span.start] for span in spans)


def up_to(spans: Sequence[Span], end: int) -> tuple[Span, ...]:
    """What of the spans lies before an index."""
    return tuple(Span(span.start, min(span.end, end)) for span in spans if span.start < end)


def ready_within(transcript: Transcript, stretch: Stretch, summaries: Iterable[Summary]) -> tuple[Summary | None, int]:
    """The summary that reaches furthest within the stretch, a model's before another, and the index of what it does not tell."""
    if not (known := [summary for summary in summaries if summary.tip]):
        return None, 0
    inside = {i for span in stretch.spans for i in range(*span)}
    places = {last_tip(transcript.entries[g.end - 1]): g.end for g in transcript.groups if g.end - 1 in inside}
    found = [(places[s.tip], s.kind == "llm", s) for s in known if s.tip in places]
    at, _, summary = max(found, key=lambda one: one[:2], default=(0, False, None))
    return summary, at
