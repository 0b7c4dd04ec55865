"""Mending a message list that rewriting, or the client, left invalid: results beside their calls, roles in turn.

For use only where the list was changed anyway; a list in order comes back as it is, the same objects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ctxproxy.core import markers
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, make, text_of, tool_calls
from ctxproxy.core.transcript import CountMessage, Entry, Transcript, clashes
from ctxproxy.core.validity import violations

Position = int


def repair(messages: Sequence[Message], language: Language = "en") -> list[Message]:
    """The list with every call answered right after its message and no orphan result.

    A late result moves up to its call, a call without one gets a short note, a result whose call is gone is left out (its text
    becomes a user message if nothing else is left). Ids may be used again by later calls.
    """
    if not violations(messages):
        return list(messages)
    waiting = _Results(messages)
    out: list[Message] = []
    for at, message in enumerate(messages):
        if message.role == "tool":
            continue
        out.append(message)
        out += _answers(message, at, waiting, language)
    return out or [make({"role": "user", "content": markers.stray(text_of(message), language)}) for message in messages[-1:]]


class _Results:
    """The tool results by id, and where each id is called, to hand every result out once."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.results: dict[str, list[Position]] = defaultdict(list)
        self.calls: dict[str, list[Position]] = defaultdict(list)
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if message.role == "tool":
                self.results[str(message.fields.get("tool_call_id"))].append(at)
            for call in tool_calls(message):
                self.calls[call.id].append(at)

    def take(self, call_id: str, caller: Position) -> Position | None:
        """The first result behind its caller and before the id is called again, or None."""
        calls, results = self.calls[call_id], self.results[call_id]
        while calls and calls[-1] <= caller:
            calls.pop()
        while results and results[-1] < caller:
            results.pop()
        if not results or (calls and results[-1] > calls[-1]):
            return None
        return results.pop()


def _answers(message: Message, at: Position, waiting: _Results, language: Language) -> Iterable[Message]:
    found = [(call.id, waiting.take(call.id, at)) for call in tool_calls(message)]
    places = sorted(place for _, place in found if place is not None)
    yield from (waiting.messages[place] for place in places)
    for call_id, place in found:
        if place is None:
            yield make({"role": "tool", "tool_call_id": call_id, "content": markers.unanswered(language)})


def alternates(messages: Iterable[Message]) -> bool:
    """Whether no two user and no two assistant messages stand side by side; system messages do not count, results part."""
    return not any(True for _ in clashes(message.role for message in messages))


def in_turn(before: Transcript, after: Transcript, stage: str, count: CountMessage, language: Language) -> Transcript:
    """A rewritten transcript with a word of ours wherever two messages of a role would meet, if none did before: each edit looks at its own
    neighbours only.
    """
    if not after.clashes or before.clashes:
        return after
    out: list[Entry] = []
    for at, entry in enumerate(after.entries):
        if at in after.clashes:
            word = acknowledgement(language) if entry.message.role == "user" else make({"role": "user", "content": markers.acknowledgement(language)})
            out.append(Entry(word, count(word), origin="inserted", stage=stage))
        out.append(entry)
    return after.with_entries(tuple(out))


def acknowledgement(language: Language) -> Message:
    """The assistant's side of a stretch that is gone."""
    return make({"role": "assistant", "content": markers.acknowledgement(language)})
