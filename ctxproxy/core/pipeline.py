"""The driver of the stages: takes their edits one by one until the target is met, applies them, and undoes a stage that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ctxproxy.core.applying import apply
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.pairing import in_turn
from ctxproxy.core.stages.base import Context, Stage
from ctxproxy.core.transcript import CountMessage, Edit, Fold, Replace, Span, Transcript
from ctxproxy.errors import InvalidEdit


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of stages made of a transcript."""

    transcript: Transcript
    actions: tuple[tuple[str, int], ...] = ()
    """Each stage that acted, with its number of edits, in order."""
    saved: tuple[tuple[str, int], ...] = ()
    """Tokens that each of them saved."""
    wants: Tip = ""
    """The tip whose summary a stand-in waits for."""
    failed: tuple[str, ...] = ()
    """Stages that raised or broke a rule; nothing of theirs is in the transcript."""


def run(transcript: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    """The transcript after the stages, in order, until it has at most `context.target` tokens; never longer than before.

    A stage that is due acts below the target too.
    """
    count = _remembered(context.count)
    actions: list[tuple[str, int]] = []
    saved: list[tuple[str, int]] = []
    failed: list[str] = []
    wants: Tip = ""
    for stage in stages:
        try:
            due = stage.due(transcript, context)
            if transcript.tokens <= context.target and not due:
                continue
            edits = _accepted(stage, transcript, context, count, due=due)
            after = in_turn(transcript, apply(transcript, edits, stage.name, count), stage.name, count, context.language) if edits else transcript
        except Exception:  # noqa: BLE001  a stage may be a user's plug-in; whatever is wrong with it must not cost the request
            failed.append(stage.name)
            continue
        if after is not transcript and after.tokens <= transcript.tokens:
            actions.append((stage.name, len(edits)))
            saved.append((stage.name, transcript.tokens - after.tokens))
            wants = next((edit.wants for edit in edits if isinstance(edit, Fold) and edit.wants), wants)
            transcript = after
    return Outcome(transcript, tuple(actions), tuple(saved), wants, tuple(failed))


def is_due(stage: Stage, transcript: Transcript, context: Context) -> bool:
    """Whether a stage has to act however short the prompt is; one that fails at the question has not: what it fails at next is noted."""
    try:
        return stage.due(transcript, context)
    except Exception:  # noqa: BLE001  as in `run`
        return False


def _remembered(count: CountMessage) -> CountMessage:
    """A counter that counts no message twice: edits are weighed when proposed and counted again when applied."""
    known: dict[bytes, int] = {}

    def counted(message: Message) -> int:
        tokens = known.get(message.raw)
        if tokens is None:
            tokens = known[message.raw] = count(message)
        return tokens

    return counted


def _accepted(stage: Stage, transcript: Transcript, context: Context, count: CountMessage, *, due: bool) -> list[Edit]:
    """A stage's edits that gain something: all where it is due or thorough, else up to the one that meets the target."""
    basket = _Basket()
    need = transcript.tokens if due or stage.thorough else transcript.tokens - context.target
    for edit in stage.propose(transcript, context):
        span = Span(edit.at, edit.at + 1) if isinstance(edit, Replace) else edit.span
        if not 0 <= span.start < span.end <= len(transcript.entries):
            raise InvalidEdit(f"stage {stage.name} edits {span.start}:{span.end}, out of range")
        new = (edit.message,) if isinstance(edit, Replace) else edit.by
        before = sum(entry.tokens for entry in transcript.entries[span.start : span.end])
        need -= basket.offer(edit, span, before - sum(map(count, new)))
        if need <= 0:
            break
    return [edit for edit, _, _ in basket.edits.values()]


@dataclass(slots=True)
class _Basket:
    """The edits taken so far; one that covers earlier ones whole takes their place, so a stage may try mild cuts first."""

    edits: dict[int, tuple[Edit, Span, int]] = field(default_factory=dict)
    """By start index: the edit, its span and its gain in tokens."""
    owners: dict[int, int] = field(default_factory=dict)
    """By entry index: the start index of the edit that covers it."""

    def offer(self, edit: Edit, span: Span, gain: int) -> int:
        """Take the edit if it gains tokens over what was taken before; gives the tokens gained, 0 if it is left.

        One inside an earlier edit is left; raises InvalidEdit if the two overlap in part.
        """
        covered = {self.owners[at] for at in range(*span) if at in self.owners}
        before = 0
        for start in covered:
            _, other, other_gain = self.edits[start]
            if other.start <= span.start and span.end <= other.end and other != span:
                return 0
            if other.start < span.start or other.end > span.end:
                raise InvalidEdit(f"edit of {span.start}:{span.end} overlaps that of {other.start}:{other.end}")
            before += other_gain
        if gain <= before:
            return 0
        for start in covered:
            del self.edits[start]
        self.edits[span.start] = (edit, span, gain)
        self.owners.update(dict.fromkeys(range(*span), span.start))
        return gain - before
