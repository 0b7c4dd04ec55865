"""What stands in a prompt whatever the stages took out of it: pinned texts, and the rules in force as far as there is room for them.

Stages know nothing of it. They get less room, and what they took out is put back: a rule into the shortened message that stated it,
else into the frame at the head, which is made if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple, TypeAlias

from ctxproxy.core.extractive import CountText
from ctxproxy.core.frames import WORDINGS, Background, acknowledgement, frame_text, is_frame, item, language_of_frame, parse, said
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, Tip, text_of, with_fields
from ctxproxy.core.pins import pins_tokens, with_pins
from ctxproxy.core.pipeline import Outcome
from ctxproxy.core.policy import Policy
from ctxproxy.core.stages.base import Context
from ctxproxy.core.standing_rules import Rule, standing
from ctxproxy.core.transcript import CountMessage, Entry, Transcript, opening
from ctxproxy.core.utterances import edges

STAGE = "rules"
"""What inserted entries name as their stage."""
LEFT_OUT = "rules_left_out"
"""The action that tells how many rules there was no room for."""
SHARE, LAST_SHARE = 0.3, 0.1
"""Of the history's limit, at most: rules; rules where what has to stay is over the limit without them, and after the ladder's last rung."""
LEAST_TOKENS = 100
"""Room for rules in a small budget, if that is not over half of it."""
DEMANDS_DELETION = frozenset({"off", "trim", "delete"})
"""Presets whose own texts say that what is over the limit is gone (004): they keep pins only."""
JOIN_TOKENS = 2
HEADING_TOKENS = 40
"""A frame's title, heading and acknowledgement."""

Act: TypeAlias = Callable[[Transcript, Context], Outcome]


class _Heard(NamedTuple):
    """What was said, as far as it is at hand: originals by tip, and what frames tell of those that are not."""

    rules: tuple[str, ...]
    messages: tuple[Message, ...]
    tips: tuple[Tip, ...]


class Stated(NamedTuple):
    """A rule in force, and the message that stated it last; "" if that is not at hand."""

    rule: Rule
    tip: Tip


def rules_room(policy: Policy, limit: int, share: float = SHARE) -> int:
    """Tokens that rules may take of a history's limit; 0 for a preset that keeps none."""
    if policy.pipeline is None and policy.preset in DEMANDS_DELETION:
        return 0
    return max(int(share * limit), min(LEAST_TOKENS, limit // 2))


def with_kept(before: Transcript, context: Context, room: int, act: Act) -> Outcome:
    """What `act` makes of a transcript, with the pins and, in at most `room` tokens, the rules that it took out; `before` as it is where
    that would be no shorter.
    """
    stated, little = _stated(before, context)
    kept = strongest(stated, room, context.count_text)
    start = _prepared(before, little)
    told = replace(context, originals={tip: _to_go_first(m) if tip in little else m for tip, m in context.originals.items()}) if little else context
    limit = context.limit + pins_tokens(context.pins, context.count, context.language)
    older = _older(before, kept, context.keep_recent_turns)
    outcome = act(start, _with_less_room(told, older))
    held, done = _put_back(outcome.transcript, kept, context)
    if done.tokens > limit and older != kept:
        outcome = act(start, _with_less_room(told, kept))
        held, done = _put_back(outcome.transcript, kept, context)
    if outcome.transcript is start:
        return replace(outcome, transcript=before)
    most = limit if held.tokens <= limit else held.tokens + int(LAST_SHARE * limit)
    while kept and done.tokens > most:
        kept = strongest(kept, _tokens(kept, context.count_text) - HEADING_TOKENS - 1, context.count_text)
        done = with_rules(held, kept, context.count, context.language)
    return _shortest(before, outcome, held, done, len(stated) - len(kept) if room else 0)


def narrowed(before: Transcript, context: Context, room: int) -> Context:
    """What stages will get to know of a transcript, so that a summary made in advance reaches as far as it has to."""
    kept = strongest(_stated(before, context)[0], room, context.count_text)
    return _with_less_room(context, _older(before, kept, context.keep_recent_turns))


def _put_back(transcript: Transcript, rules: Sequence[Stated], context: Context) -> tuple[Transcript, Transcript]:
    """A transcript with the pins that it lacks, and with the rules too."""
    held = with_pins(transcript, context.pins, context.count, context.language)
    return held, with_rules(held, rules, context.count, context.language)


def _shortest(before: Transcript, outcome: Outcome, held: Transcript, done: Transcript, left_out: int) -> Outcome:
    """The outcome with what is to be kept, without the rules or not at all where it would be no shorter than before."""
    if done.tokens >= before.tokens and done is not outcome.transcript:
        if held is not outcome.transcript and held.tokens >= before.tokens:
            return Outcome(before, failed=outcome.failed)
        return replace(outcome, transcript=held)
    marks = ((LEFT_OUT, left_out),) if left_out else ()
    return replace(outcome, transcript=done, actions=(*outcome.actions, *marks), saved=(*outcome.saved, *((name, 0) for name, _ in marks)))


def _with_less_room(context: Context, rules: Sequence[Stated]) -> Context:
    reserve = _tokens(rules, context.count_text)
    limit, target = max(context.limit - reserve, 0), max(context.target - reserve, 0)
    return replace(context, limit=limit, target=target, rules=[one.rule.text for one in rules])


# --- what was said -----------------------------------------------------------------------------------------------------------------


def _stated(before: Transcript, context: Context) -> tuple[list[Stated], set[Tip]]:
    """The rules in force, and the messages that matter little."""
    heard = _heard(before, context.originals)
    found = standing(heard.messages, heard.rules, context.memo)
    stated = [Stated(rule, heard.tips[rule.at] if rule.at >= 0 else "") for rule in found.rules]
    return stated, {heard.tips[at] for at in found.little} - {""}


def _heard(before: Transcript, originals: Mapping[Tip, Message]) -> _Heard:
    """The originals; where some are not at hand, first what the frames that cover them hold."""
    framed = [is_frame(entry.message) for entry in before.entries]
    frames = list(compress(before.entries, framed))
    lost = [parse(text_of(e.message)) for e in frames if not originals or any(tip not in originals for tip in e.covers)]
    words = [said("user", word) for frame in lost if frame for word in frame.words]
    rest = originals.items() if originals else [(e.tip, e.message) for e, ours in zip(before.entries, framed, strict=True) if not ours]
    rules = tuple(rule for frame in lost if frame for rule in frame.rules)
    return _Heard(rules, (*words, *(m for _, m in rest)), (*("" for _ in words), *(tip for tip, _ in rest)))


def strongest(stated: Sequence[Stated], room: int, count_text: CountText) -> list[Stated]:
    """The rules that fit: the surest first, of equal ones the newest; in the order in which they were said."""
    order = sorted(range(len(stated)), key=lambda n: (stated[n].rule.weight, stated[n].rule.at, n), reverse=True)
    chosen: list[int] = []
    for n in order:
        cost = count_text(stated[n].rule.text) + JOIN_TOKENS
        if cost <= room:
            chosen.append(n)
            room -= cost
    return [stated[n] for n in sorted(chosen)]


def _older(before: Transcript, kept: Sequence[Stated], recent_turns: int) -> list[Stated]:
    """The rules that were not said in the newest turns, which stay if they can."""
    turns = before.turns
    start = turns[-min(recent_turns, len(turns))].start if recent_turns and turns else len(before.entries)
    recent = {entry.tip for entry in before.entries[start:]}
    return [one for one in kept if one.tip not in recent]


def _tokens(rules: Sequence[Stated], count_text: CountText) -> int:
    return sum(count_text(one.rule.text) + JOIN_TOKENS for one in rules) + HEADING_TOKENS if rules else 0


def _prepared(before: Transcript, little: Collection[Tip]) -> Transcript:
    """The transcript that the stages get: without the frame that only holds rules, with what matters little marked to go first."""
    if not little and all(entry.stage != STAGE for entry in before.entries):
        return before
    kept = (entry for entry in before.entries if entry.stage != STAGE)
    return before.with_entries(tuple(e._replace(message=_to_go_first(e.message)) if e.tip in little and not e.pinned else e for e in kept))


def _to_go_first(message: Message) -> Message:
    return message.with_directives(message.directives._replace(drop_first=True))


# --- where rules stand -------------------------------------------------------------------------------------------------------------


def with_rules(transcript: Transcript, rules: Sequence[Stated], count: CountMessage, language: Language) -> Transcript:
    """The transcript with the rules that no user message in it holds, and no rule in a frame that is not among these."""
    speaking = [entry for entry in transcript.entries if entry.message.role == "user" or entry.origin == "inserted"] if rules else []
    said_texts = "\n".join([edges(_spoken(entry)) for entry in speaking])
    missing = [one for one in rules if one.rule.text not in said_texts]  # nearly all stand there as they were said
    if missing:
        said_texts = _level(said_texts)
        missing = [one for one in missing if _level(one.rule.text) not in said_texts]
    entries = list(transcript.entries)
    framed = _frames_rules(entries)
    for at, entry in enumerate(entries):
        own = [one for one in missing if one.tip == entry.tip and one.tip and one.rule.text not in framed]
        if own and entry.origin == "edited" and entry.message.role == "user":
            entries[at] = _amended(entry, [one.rule.text for one in own], count, language)
            missing = [one for one in missing if one not in own]
    places = [at for at, entry in enumerate(entries) if _is_ours(entry)]
    for at in places:
        entries[at] = _rewritten(entries[at], [one.rule.text for one in missing] if at == places[0] else [], count)
    front = _frame(missing, entries, count, language) if missing and not places else []
    changed = bool(front) or any(new is not old for new, old in zip(entries, transcript.entries, strict=True))
    return transcript.with_entries((*front, *entries)) if changed else transcript


def _spoken(entry: Entry) -> str:
    """What an entry holds of the user's words: all of a user message, of a frame all but its rules."""
    frame = parse(text_of(entry.message)) if _is_ours(entry) else None
    if frame:
        return "\n".join((frame.summary, *frame.words, *frame.pins, frame.passages))
    return text_of(entry.message) if entry.message.role == "user" else ""


def _is_ours(entry: Entry) -> bool:
    return entry.origin == "inserted" and is_frame(entry.message)


def _level(text: str) -> str:
    """Wrapped lines and lists read alike, wherever they stand."""
    return " ".join(text.split())


def _frames_rules(entries: Sequence[Entry]) -> set[str]:
    frames = (parse(text_of(entry.message)) for entry in entries if _is_ours(entry))
    return {rule for frame in frames if frame for rule in frame.rules}


def _amended(entry: Entry, rules: Sequence[str], count: CountMessage, language: Language) -> Entry:
    """A shortened message with the rules in it that were cut away."""
    note = "\n".join((WORDINGS[language].rules, *map(item, rules)))
    content = entry.message.content
    text = {"type": "text", "text": note}
    message = with_fields(entry.message, content=[*content, text] if isinstance(content, list) else f"{text_of(entry.message)}\n{note}")
    return entry._replace(message=message, tokens=count(message))


def _rewritten(entry: Entry, rules: Sequence[str], count: CountMessage) -> Entry:
    """A frame of ours with these rules in place of its own."""
    text = text_of(entry.message)
    frame, language = parse(text), language_of_frame(text)
    if frame is None or frame.rules == tuple(rules):
        return entry
    message = with_fields(entry.message, content=frame_text(frame._replace(rules=tuple(rules)), language))
    return entry._replace(message=message, tokens=count(message))


def _frame(missing: Sequence[Stated], entries: Sequence[Entry], count: CountMessage, language: Language) -> list[Entry]:
    """A frame of its own for rules, with an acknowledgement where a user message follows."""
    messages = [said("user", frame_text(Background("", rules=tuple(one.rule.text for one in missing)), language))]
    if opening(entries) == "user":
        messages.append(acknowledgement(language))
    return [Entry(m, count(m), origin="inserted", stage=STAGE, reason="rules in force that no other entry holds") for m in messages]
