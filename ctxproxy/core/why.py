"""Where a phrase went: the messages that hold it, when each left the prompt and by which stage, what stands in for it, how it comes back.

All is told from what is stored: the log, and every decision that was made about it. Pure; who looks things up is `proxy/tracing.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core.checkpoints import replay
from ctxproxy.core.fates import Fate, fates
from ctxproxy.core.forgetting import CLEARED
from ctxproxy.core.forgetting import STAGE as FORGOTTEN
from ctxproxy.core.frames import is_filler, is_frame
from ctxproxy.core.markers import is_marker, marker_of
from ctxproxy.core.messages import Message, Tip, text_of
from ctxproxy.core.phrases import Found, Phrase, said_in
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import Checkpoint, Pin, Session
from ctxproxy.core.sightings import Placed, Sightings
from ctxproxy.core.situation import Situation, base_transcript

State: TypeAlias = Literal["sent", "compacted", "summarized", "dropped", "forgotten", "cleared"]
Kind: TypeAlias = Literal["frame", "marker", "shortened", "word"]
STATES: Mapping[str, State] = {FORGOTTEN: "forgotten", CLEARED: "cleared"}
"""What is left out by somebody's word, by the stage that it is told under."""
EXCERPT_CHARS = 200


class View(NamedTuple):
    """A branch, and what the next request on it would carry."""

    situation: Situation
    plan: Plan


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a message's state by a decision: made at `time` with the request of `turn` that ended at `tip`; None: with the next one."""

    state: State
    stage: str
    why: str
    time: float | None = None
    tip: Tip = ""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class StandIn:
    """What is sent in place of a message: `at` is its index in the view, `holds` whether the phrase is in it."""

    at: int
    kind: Kind
    holds: bool
    excerpt: str


@dataclass(frozen=True, slots=True)
class Held:
    """A message that holds the phrase."""

    tip: Tip
    role: str
    time: float
    turn: int
    """Of its branch, from 1 on; 0 before the first user message."""
    branch: Tip
    branches: int
    """How many branches go through it."""
    found: Found
    state: State
    stage: str
    why: str
    left: Step | None
    """When it left the prompt, as it was: None while it is sent, or where nobody noted when."""
    steps: tuple[Step, ...]
    stands_in: StandIn | None

    @property
    def marker(self) -> str:
        """What gives the original (`GET expand/{marker}`)."""
        return marker_of(self.tip)


@dataclass(frozen=True, slots=True)
class Why:
    """The answer: every message that holds the phrase, oldest first."""

    session: str
    phrase: str
    searched: int
    """Messages that were looked at."""
    held: tuple[Held, ...]
    left_off: int
    """How many more hold it."""
    prompt: tuple[int, ...]
    """The indexes of the view's messages that hold it: what the next request will carry of it."""
    pins: tuple[int, ...]
    """The numbers of the pins that hold it."""

    @property
    def pin(self) -> str:
        """The sentence to pin so that it comes back: the newest one that the prompt lacks; "" where nothing is missing."""
        if self.prompt or self.pins:
            return ""
        return next((one.found.sentence for one in reversed(self.held) if one.state != "forgotten"), "")


def explain(phrase: Phrase, session: Session, seen: Sightings, views: Mapping[Tip, View], pins: Sequence[Pin]) -> Why:
    """Where a phrase went; the first of the views is of the branch on which the conversation stands, what is told on none is only counted."""
    placed = seen.placed(list(views))
    told = {one.tip: one for branch, view in views.items() for one in _told(phrase, branch, view, placed)}
    held = tuple(told[one.sighting.row.tip] for one in placed if one.sighting.row.tip in told)
    return Why(
        session=session.key.id,
        phrase=phrase.text,
        searched=seen.searched,
        held=held,
        left_off=seen.left_off + len(placed) - len(held),
        prompt=next((_in_prompt(phrase, view) for view in views.values()), ()),
        pins=tuple(pin.number for pin in pins if phrase.in_text(pin.text)),
    )


def _in_prompt(phrase: Phrase, view: View) -> tuple[int, ...]:
    messages = (*view.situation.leading, *(entry.message for entry in view.plan.transcript.entries))
    return tuple(at for at, message in enumerate(messages) if phrase.in_message(message))


def _told(phrase: Phrase, branch: Tip, view: View, placed: Sequence[Placed]) -> Iterator[Held]:
    """What became of the messages that are told on one branch."""
    s, own = view.situation, [one for one in placed if one.branch == branch]
    if not own:
        return
    depth = {tip: at for at, tip in enumerate(s.reconciled.tips)}
    turns = list(accumulate(int(message.role == "user") for message in s.reconciled.history))
    now = {fate.tip: fate for fate in fates(s, view.plan)}
    decisions = [(c, {fate.tip: fate for fate in _decided(view, c)}) for c in _in_order(s, depth)]
    for one in own:
        row = one.sighting.row
        at, fate = depth[row.tip], now[row.tip]
        steps = tuple(_steps(fate, [(_when(c, turns, depth), told[row.tip]) for c, told in decisions if depth[c.tip] >= at]))
        yield Held(
            tip=row.tip,
            role=row.role,
            time=row.created,
            turn=turns[at],
            branch=branch,
            branches=one.branches,
            found=one.sighting.found,
            state=_state(fate),
            stage=fate.stage,
            why=fate.why,
            left=_left(steps),
            steps=steps,
            stands_in=_stand_in(phrase, view, fate),
        )


def _in_order(s: Situation, depth: Mapping[Tip, int]) -> list[Checkpoint]:
    """The decisions about a branch under the session's model and preset, oldest first; of those made at once the deepest."""
    by_time: dict[float, Checkpoint] = {}
    for one in s.checkpoints:
        if one.variant == s.variant and one.tip in depth:
            other = by_time.get(one.created)
            by_time[one.created] = one if other is None or depth[one.tip] > depth[other.tip] else other
    return [by_time[time] for time in sorted(by_time)]


def _decided(view: View, checkpoint: Checkpoint) -> tuple[Fate, ...]:
    """What a decision made of each message, whatever was forgotten or cleared since."""
    s = replace(view.situation, forgotten=frozenset(), cleared=frozenset())
    return fates(s, replace(view.plan, transcript=replay(checkpoint, base_transcript(s), s.count), changed=True))


def _when(checkpoint: Checkpoint, turns: Sequence[int], depth: Mapping[Tip, int]) -> tuple[float, Tip, int]:
    return checkpoint.created, checkpoint.tip, turns[depth[checkpoint.tip]]


def _steps(now: Fate, decided: Sequence[tuple[tuple[float, Tip, int], Fate]]) -> Iterator[Step]:
    """Each change of a message's state, oldest first."""
    last: tuple[str, str] = ("sent", "")
    for (time, tip, turn), fate in decided:
        if _what(fate) != last:
            last = _what(fate)
            yield Step(_state(fate), fate.stage, fate.why, time, tip, turn)
    if _what(now) != last:
        yield Step(_state(now), now.stage, now.why)


def _what(fate: Fate) -> tuple[str, str]:
    return fate.state, fate.stage


def _state(fate: Fate) -> State:
    return STATES.get(fate.stage, fate.state)


def _left(steps: Sequence[Step]) -> Step | None:
    """The step since which a message is no longer sent as it was; nobody notes when one was forgotten or cleared."""
    left: Step | None = None
    for step in steps:
        left = None if step.state == "sent" else left or step
    return None if left and left.state in STATES.values() else left


def _stand_in(phrase: Phrase, view: View, fate: Fate) -> StandIn | None:
    if fate.state == "sent" or fate.entry is None:
        return None
    message = view.plan.transcript.entries[fate.entry].message
    found = phrase.find(message)
    at = len(view.situation.leading) + fate.entry
    return StandIn(at, _kind(message), found is not None, found.excerpt if found else _beginning(message))


def _kind(message: Message) -> Kind:
    if is_frame(message):
        return "frame"
    if is_filler(message):
        return "word"
    return "marker" if is_marker(text_of(message)) else "shortened"


def _beginning(message: Message) -> str:
    words = " ".join(" ".join(text for _, text in said_in(message)).split())
    return words if len(words) <= EXCERPT_CHARS else words[: EXCERPT_CHARS - 1] + "…"
