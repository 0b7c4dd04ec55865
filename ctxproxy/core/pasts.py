"""What was worked out of a history is kept with its last message: of a history that goes on from it, only what is new is gone through."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ctxproxy.core.messages import ROOT, Message, Tip, identity, tips_of

LOOKED_BACK = 8
"""Messages at the end of a history that may have come since the last one: a turn with a few calls and results."""


@dataclass(slots=True)
class Past:
    """A history with what is known of it; its tokens are filled in when somebody asks."""

    messages: tuple[Message, ...] = ()
    tips: tuple[Tip, ...] = ()
    users: int = 0
    """Messages of users."""
    _way: str = field(default="", repr=False)
    _plain: tuple[int, ...] = field(default=(), repr=False)
    _factor: float = field(default=1.0, repr=False)
    _scaled: tuple[int, ...] = field(default=(), repr=False)

    @property
    def tip(self) -> Tip:
        return self.tips[-1] if self.tips else ROOT

    def uncounted(self, way: str) -> tuple[Message, ...]:
        """The messages whose tokens were not asked for in this way of counting."""
        return self.messages[len(self._plain) :] if self._way == way else self.messages

    def counts(self, way: str, count: Callable[[Message], int], factor: float = 1.0) -> tuple[int, ...]:
        """The tokens of each message in a way of counting, times a factor, rounded up."""
        if self._way != way:
            self._way, self._plain, self._scaled = way, (), ()
        if len(self._plain) < len(self.messages):
            self._plain += tuple(map(count, self.messages[len(self._plain) :]))
        if factor == 1:
            return self._plain
        if self._factor != factor:
            self._factor, self._scaled = factor, ()
        if len(self._scaled) < len(self._plain):
            self._scaled += tuple(math.ceil(one * factor) for one in self._plain[len(self._scaled) :])
        return self._scaled

    def with_more(self, messages: tuple[Message, ...], identify: Callable[[Message], bytes]) -> Past:
        """The longer history that begins with this one."""
        new = messages[len(self.messages) :]
        users = self.users + sum(message.role == "user" for message in new)
        return Past(messages, (*self.tips, *tips_of(self.tip, new, identify)), users, self._way, self._plain, self._factor, self._scaled)


def past_of(history: Sequence[Message], identify: Callable[[Message], bytes] = identity) -> Past:
    """What is known of a history, which is remembered with its last message in place of what was known of a shorter one."""
    messages = history if isinstance(history, tuple) else tuple(history)
    if messages and isinstance(known := messages[-1].past, Past) and known.messages is messages:
        return known
    before = next((past for at in range(len(messages), max(len(messages) - LOOKED_BACK, 0), -1) if (past := _past_up_to(messages, at))), None)
    if before is not None and len(before.messages) == len(messages):
        return before
    past = (before or Past()).with_more(messages, identify)
    if before is not None:
        before.messages[-1].keep_past(None)
    if messages:
        messages[-1].keep_past(past)
    return past


def _past_up_to(messages: tuple[Message, ...], end: int) -> Past | None:
    """What is kept with the last of the first `end` messages, if it is of these very messages."""
    past = messages[end - 1].past
    return past if isinstance(past, Past) and past.messages == messages[:end] else None
