"""What was worked out of a history is kept with its last message: of a history that goes on from it, only what is new is gone through."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ctxproxy.core.messages import ROOT, Message, Tip, identity, tips_of

LOOKED_BACK = 8
"""Messages at the end of a history that may have come since the last one: a turn with a few calls and results."""


@dataclass(slots=True)
class _Figures:
    """What the last message of a history keeps of it: not that message itself, or the two would hold each other."""

    front: tuple[Message, ...] = ()
    """The messages before the last."""
    tips: tuple[Tip, ...] = ()
    users: int = 0
    way: str = ""
    plain: tuple[int, ...] = ()
    factor: float = 1.0
    scaled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """A history with what is known of it; its tokens are filled in when somebody asks."""

    messages: tuple[Message, ...] = ()
    _known: _Figures = field(default_factory=_Figures, repr=False)

    @property
    def tips(self) -> tuple[Tip, ...]:
        return self._known.tips

    @property
    def users(self) -> int:
        """Messages of users."""
        return self._known.users

    @property
    def tip(self) -> Tip:
        return self.tips[-1] if self.tips else ROOT

    def uncounted(self, way: str) -> tuple[Message, ...]:
        """The messages whose tokens were not asked for in this way of counting."""
        return self.messages[len(self._known.plain) :] if self._known.way == way else self.messages

    def counts(self, way: str, count: Callable[[Message], int], factor: float = 1.0) -> tuple[int, ...]:
        """The tokens of each message in a way of counting, times a factor, rounded up."""
        known = self._known
        if known.way != way:
            known.way, known.plain, known.scaled = way, (), ()
        if len(known.plain) < len(self.messages):
            known.plain += tuple(map(count, self.messages[len(known.plain) :]))
        if factor == 1:
            return known.plain
        if known.factor != factor:
            known.factor, known.scaled = factor, ()
        if len(known.scaled) < len(known.plain):
            known.scaled += tuple(math.ceil(one * factor) for one in known.plain[len(known.scaled) :])
        return known.scaled

    def with_more(self, messages: tuple[Message, ...], identify: Callable[[Message], bytes]) -> Past:
        """The longer history that begins with this one, of which its last message keeps what is known."""
        new, known = messages[len(self.messages) :], self._known
        users = known.users + sum(message.role == "user" for message in new)
        tips = (*known.tips, *tips_of(self.tip, new, identify))
        figures = _Figures(messages[:-1], tips, users, known.way, known.plain, known.factor, known.scaled)
        messages[-1].keep_past(figures)
        return Past(messages, figures)


def past_of(history: Sequence[Message], identify: Callable[[Message], bytes] = identity) -> Past:
    """What is known of a history, which is remembered with its last message in place of what was known of a shorter one."""
    messages = history if isinstance(history, tuple) else tuple(history)
    if not messages:
        return Past()
    if past := _past_up_to(messages, len(messages)):
        return past
    ends = range(len(messages) - 1, max(len(messages) - LOOKED_BACK, 0), -1)
    before = next((past for end in ends if (past := _past_up_to(messages, end))), Past())
    if before.messages:
        before.messages[-1].keep_past(None)
    return before.with_more(messages, identify)


def _past_up_to(messages: tuple[Message, ...], end: int) -> Past | None:
    """What is kept with the last of the first `end` messages, if it is of these very messages."""
    known = messages[end - 1].past
    if isinstance(known, _Figures) and len(known.front) == end - 1 and known.front == messages[: end - 1]:
        return Past(messages[:end], known)
    return None
