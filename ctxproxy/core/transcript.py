"""The prompt's messages as entries, the spans they may be cut into, and the edits that stages propose.

A *group* is an assistant message with all its tool results, or any other single message; an edit never parts one. Leading
system messages are not in a transcript: nothing may touch them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, repeat
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core.messages import SYSTEM_ROLES, Message, Tip, ToolCall, tool_calls
from ctxproxy.core.records import LeftOut

RESULT_ROLES = ("tool", "function")
Origin: TypeAlias = Literal["original", "edited", "inserted"]
CountMessage: TypeAlias = Callable[[Message], int]


class Entry(NamedTuple):
    """One message of the prompt: what is sent, what it costs, and why it stands as it does."""

    message: Message
    tokens: int
    tip: Tip = ""
    """The history message that it stands for; "" for a text of ours."""
    origin: Origin = "original"
    stage: str = ""
    """The stage that edited or inserted it; "" for an original."""
    covers: tuple[Tip, ...] = ()
    """The history messages that an inserted entry stands in for, oldest first."""
    pinned: bool = False
    """Never edited, never dropped."""
    reason: str = ""
    """Why the stage did so, in its own words."""


class Span(NamedTuple):
    """Half-open range of entry indexes."""

    start: int
    end: int


class Exchange(NamedTuple):
    """A result at an index of the transcript, the message that its group begins with, and the call that it answers (None: an orphan, or an
    old function call).
    """

    at: int
    head: Message
    call: ToolCall | None


@dataclass(frozen=True)
class Transcript:
    """The history part of a prompt, oldest first."""

    entries: tuple[Entry, ...]
    left: tuple[LeftOut, ...] = ()
    """What is in it no more and left no trace in the entries."""

    @cached_property
    def tokens(self) -> int:
        return sum([entry.tokens for entry in self.entries])

    @cached_property
    def sums(self) -> tuple[int, ...]:
        """The tokens of the first 0, 1, 2 … entries."""
        return tuple(accumulate([entry.tokens for entry in self.entries], initial=0))

    def with_entries(self, entries: tuple[Entry, ...]) -> Transcript:
        """The same with other entries; `dataclasses.replace` cannot make it of a `Whole`."""
        return Transcript(entries, self.left)

    def in_shape(self, entries: tuple[Entry, ...], left: tuple[LeftOut, ...]) -> Transcript:
        """The same with entries that differ in text alone: what is known of where what stands holds on."""
        other = Transcript(entries, left)
        other.__dict__.update({name: known for name in SHAPE if (known := self.__dict__.get(name)) is not None})
        return other

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """Whose messages they are."""
        return tuple([entry.message.role for entry in self.entries])

    @cached_property
    def groups(self) -> tuple[Span, ...]:
        """The spans that cannot be parted, oldest first, without gaps."""
        return _spans(_group_starts([entry.message for entry in self.entries], self.roles), len(self.entries))

    @cached_property
    def turns(self) -> tuple[Span, ...]:
        """The turns, oldest first: each begins at a user message (000-02); what stands before the first one is a turn of its own."""
        return _spans(_turn_starts(self), len(self.entries))

    @cached_property
    def newest(self) -> Span:
        """The newest group, and all from the last user message on if that is later: what the model is asked right now."""
        return _newest(self)

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Every tool result, oldest first."""
        return tuple(_exchanges(self))

    @cached_property
    def last_user(self) -> int:
        """The index of the client's last user message, -1 if there is none: a word of ours further on is not what was asked."""
        places = (i for i in range(len(self.entries) - 1, -1, -1) if self.entries[i].origin != "inserted")
        return next((i for i in places if self.roles[i] == "user"), -1)

    @cached_property
    def untouchable(self) -> frozenset[int]:
        """The indexes that no stage may edit: pinned entries and the last user message."""
        pinned = (at for at, entry in enumerate(self.entries) if entry.pinned)
        return frozenset((*pinned, self.last_user)) - {-1}

    @cached_property
    def protected(self) -> frozenset[int]:
        """The indexes that no stage may drop: those that none may edit, and the newest group."""
        return self.untouchable | set(range(*self.newest))

    @cached_property
    def clashes(self) -> frozenset[int]:
        """The indexes of user and assistant messages that follow one of their own role."""
        return frozenset(clashes(self.roles))


class Whole(Transcript):
    """A history as it stands in the log, whose entries are made when somebody looks at them: what goes out as it came, nobody does."""

    _parts: tuple[Sequence[Message], Sequence[int], Sequence[Tip]]

    def __init__(self, history: Sequence[Message], counts: Sequence[int], tips: Sequence[Tip]) -> None:
        object.__setattr__(self, "left", ())
        object.__setattr__(self, "_parts", (history, counts, tips))

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple([Entry(*part, pinned=True) if part[0].directives.pin else Entry(*part) for part in zip(*self._parts, strict=True)])

    @cached_property
    def tokens(self) -> int:
        return sum(self._parts[1])


SHAPE = ("roles", "groups", "turns", "newest", "last_user", "untouchable", "protected", "clashes")
"""What depends on roles, call ids, origins and pins alone."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Send another message in place of one entry; role and call ids must stay."""

    at: int
    message: Message
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Send these messages (none: leave it out) in place of a span of whole groups."""

    span: Span
    by: tuple[Message, ...] = ()
    reason: str = ""
    wants: Tip = ""
    """This stands in for a summary up to that tip, which is not there yet."""
    keeps_last: bool = False
    """The last of `by` is the span's last message, edited: it stays what it is, with something in front of it that tells of the others."""


Edit: TypeAlias = Replace | Fold


def _spans(starts: Sequence[int], end: int) -> tuple[Span, ...]:
    """The spans that begin at these indexes, each up to the next one's beginning, the last one up to `end`."""
    return tuple(map(tuple.__new__, repeat(Span), zip(starts, [*starts[1:], end], strict=False)))  # as `Span(...)`, a third of the time


def _group_starts(messages: Sequence[Message], roles: Sequence[str]) -> list[int]:
    starts, at, total = [], 0, len(messages)
    while at < total:
        starts.append(at)
        end = at + 1
        if roles[at] == "assistant" and (calls := messages[at].calls):
            end = _end_of_results(messages, roles, at, {call.id for call in calls})
        while end < total and roles[end] in RESULT_ROLES:
            end += 1
        at = end
    return starts


def _end_of_results(messages: Sequence[Message], roles: Sequence[str], start: int, open_ids: set[str]) -> int:
    """Past the last result of a call, also where a client let a user message come in between (invalid, yet seen)."""
    end = start + 1
    for at in range(start + 1, len(messages)):
        if not open_ids or roles[at] == "assistant":
            break
        if roles[at] == "tool" and (call_id := str(messages[at].fields.get("tool_call_id"))) in open_ids:
            open_ids.discard(call_id)
            end = at + 1
    return end


def _turn_starts(transcript: Transcript) -> list[int]:
    """A user message inside a group (it came between a call and its result) begins no turn: a turn is made of whole groups."""
    entries, roles = transcript.entries, transcript.roles
    starts = [at for at, _ in transcript.groups if roles[at] == "user" and not (entries[at].origin == "inserted" and at)]
    return [0, *starts] if entries and (not starts or starts[0] > 0) else starts


def _exchanges(transcript: Transcript) -> Iterable[Exchange]:
    """Call ids are looked up within the group: clients use them again in later turns."""
    entries, roles = transcript.entries, transcript.roles
    for start, end in transcript.groups:
        if end == start + 1 and roles[start] not in RESULT_ROLES:
            continue
        head = entries[start].message
        calls = {call.id: call for call in tool_calls(head)}
        for at in range(start, end):
            if roles[at] in RESULT_ROLES:
                yield Exchange(at, head, calls.get(str(entries[at].message.fields.get("tool_call_id"))))


def _newest(transcript: Transcript) -> Span:
    if not transcript.entries:
        return Span(0, 0)
    start = transcript.groups[-1].start
    if transcript.roles[-1] == "assistant" and len(transcript.groups) > 1 and not tool_calls(transcript.entries[-1].message):
        start = transcript.groups[-2].start  # a prefill of the client's: the request stands before it
    return Span(start, len(transcript.entries))


def clashes(roles: Iterable[str]) -> Iterator[int]:
    """The places of users and assistants that come twice in a row; system messages do not count, results part."""
    last = ""
    for at, role in enumerate(roles):
        if role in SYSTEM_ROLES:
            continue
        if role == last and role in ("user", "assistant"):
            yield at
        last = role


def opening(entries: Iterable[Entry]) -> str:
    """The role of the first entry that is no system message, "" if there is none: where earlier edits took out what stood before it, a system
    message may come first, and the conversation still begins behind it.
    """
    return next((role for entry in entries if (role := entry.message.role) not in SYSTEM_ROLES), "")


def joined(left: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """The same, what one stage left out for one reason told once, no message twice."""
    tips: dict[tuple[str, str], dict[Tip, None]] = {}
    for one in left:
        tips.setdefault((one.stage, one.reason), {}).update(dict.fromkeys(one.tips))
    return tuple(LeftOut(tuple(found), stage, reason) for (stage, reason), found in tips.items() if found)
