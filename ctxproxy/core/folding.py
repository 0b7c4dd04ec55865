"""Leaving out whole stretches so that the list stays one that strict upstreams take: roles in turn, a user message first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from ctxproxy.core import markers, pairing
from ctxproxy.core.language import Language
from ctxproxy.core.messages import SYSTEM_ROLES, Message, make
from ctxproxy.core.transcript import Fold, Span, Transcript, opening


class Folder:
    """Folds of one transcript; what must stay and whether the client's roles alternate is looked up once."""

    def __init__(self, transcript: Transcript, language: Language, reason: str = "") -> None:
        self.reason = reason
        self.entries = transcript.entries
        self.transcript = transcript
        self.kept = transcript.protected
        self.user_first = opening(self.entries) == "user"
        self.alternates = not transcript.clashes
        self.answer = pairing.acknowledgement(language)
        self.question = make({"role": "user", "content": markers.acknowledgement(language)})
        self.reset()

    def reset(self) -> None:
        """Forget the folds made so far."""
        self.starts: dict[int, Fold] = {}
        self.ends: dict[int, Fold] = {}

    def turn(self, turn: Span) -> Iterator[Fold]:
        """One fold for the whole turn, or, if something in it must stay, folds for all but its first message and that."""
        if self.kept.isdisjoint(range(*turn)):
            yield Fold(turn, reason=self.reason)
        else:
            yield from self.body(turn)

    def body(self, turn: Span) -> Iterator[Fold]:
        """Folds for what follows the first message of a turn: each run of groups without anything that must stay."""
        start = turn.start + (self.entries[turn.start].message.role == "user")
        return self.runs(Span(start, turn.end))

    def runs(self, span: Span) -> Iterator[Fold]:
        """A fold for each run of groups of a span without anything that must stay."""
        run: Span | None = None
        for group in self.free_groups(span):
            if run and run.end != group.start:
                yield self.fold(run)
                run = None
            run = Span(run.start if run else group.start, group.end)
        if run:
            yield self.fold(run)

    def free_groups(self, span: Span) -> Iterator[Span]:
        """The groups of a span without anything that must stay, oldest first."""
        groups = self.transcript.groups
        for n in range(bisect_left(groups, (span.start,)), len(groups)):
            if groups[n].end > span.end:
                return
            if self.kept.isdisjoint(range(*groups[n])):
                yield groups[n]

    def fold(self, span: Span) -> Fold:
        """The fold of whole groups, with what must stand in their place so that the messages around, as earlier folds leave them, do not
        clash.
        """
        before, after = self._role_before(span.start), self._role_after(span.end)
        by: tuple[Message, ...] = ()
        if self.alternates and before == after == "user":
            by = (self.answer,)
        elif after == "assistant" and ((before == "assistant" and self.alternates) or (not before and self.user_first)):
            by = (self.question,)
        fold = Fold(span, by, self.reason)
        self.starts[span.start] = self.ends[span.end] = fold
        return fold

    def _role_before(self, at: int) -> str:
        """The role of the next message towards the front that is no system message; "" if there is none."""
        while at > 0:
            if fold := self.ends.get(at):
                if fold.by:
                    return fold.by[-1].role
                at = fold.span.start
            elif (role := self.entries[at - 1].message.role) not in SYSTEM_ROLES:
                return role
            else:
                at -= 1
        return ""

    def _role_after(self, at: int) -> str:
        """The same towards the end."""
        while at < len(self.entries):
            if fold := self.starts.get(at):
                if fold.by:
                    return fold.by[0].role
                at = fold.span.end
            elif (role := self.entries[at].message.role) not in SYSTEM_ROLES:
                return role
            else:
                at += 1
        return ""
