"""Goes through the log of a session and notes the messages that hold a phrase, and on which of its branches each stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.phrases import Found, Phrase
from ctxproxy.core.records import StoredMessage
from ctxproxy.core.wire import from_log


@dataclass(frozen=True, slots=True)
class Sighting:
    """A message that holds the phrase."""

    row: StoredMessage
    message: Message
    found: Found


@dataclass(frozen=True, slots=True)
class Placed:
    """A sighting, the branch on which its state is told, and on how many it stands."""

    sighting: Sighting
    branch: Tip
    branches: int


class Sightings:
    """Fed with a log, page by page and oldest first; holds what was found and the shape of the log, not the log."""

    def __init__(self, phrase: Phrase, most: int) -> None:
        self._phrase = phrase
        self._most = most
        self._parents: dict[Tip, Tip] = {}
        self._found: list[Sighting] = []
        self._left_off = 0

    @property
    def searched(self) -> int:
        """How many messages were looked at."""
        return len(self._parents)

    @property
    def left_off(self) -> int:
        """How many hold the phrase beside those that are noted."""
        return self._left_off

    def add(self, rows: Iterable[StoredMessage]) -> None:
        """Look at further messages; an erased one holds nothing."""
        for row in rows:
            self._parents[row.tip] = row.parent
            if not row.raw:
                continue
            message = from_log(row.raw)
            found = self._phrase.find(message)
            if found and len(self._found) < self._most:
                self._found.append(Sighting(row, message, found))
            elif found:
                self._left_off += 1

    def placed(self, preferred: Sequence[Tip]) -> tuple[Placed, ...]:
        """What was found, oldest first: each on the first of the preferred branches that it stands on, else on its own."""
        first, numbers = self._first_of(preferred), self._numbers()
        return tuple(Placed(one, first.get(one.row.tip, one.row.tip), numbers[one.row.tip]) for one in self._found)

    def _first_of(self, preferred: Sequence[Tip]) -> Mapping[Tip, Tip]:
        """The first of these branches that goes through each message."""
        first: dict[Tip, Tip] = {}
        for branch in preferred:
            tip = branch
            while tip in self._parents and tip not in first:
                first[tip] = branch
                tip = self._parents[tip]
        return first

    def _numbers(self) -> Mapping[Tip, int]:
        """How many branches go through each message; a child stands behind its parent in the log."""
        inner = set(self._parents.values())
        numbers = {tip: int(tip not in inner) for tip in self._parents}
        for tip in reversed(self._parents):
            parent = self._parents[tip]
            if parent in numbers:
                numbers[parent] += numbers[tip]
        return numbers
