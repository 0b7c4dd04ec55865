"""Old results whose subject was read again, run again or written anew later: the newer one stays, the older becomes a marker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxproxy.core import jsontext
from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.markers import PATH_ARGUMENTS, superseded_topic
from ctxproxy.core.memo import Reading
from ctxproxy.core.messages import Message, ToolCall, digest, text_of, tool_calls
from ctxproxy.core.policy import Count
from ctxproxy.core.rewrites import marked
from ctxproxy.core.selection import is_noteworthy
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Exchange, Replace, Transcript

WRITES = re.compile(r"(?i)(?:^|[_.-])(?:write|create|overwrite|save|put)|^(?:write|create|save)")
"""Tools that set a file's whole content; an edit or a patch leaves the rest as the earlier read showed it."""

FIRST_LINE = re.compile(r"\S[^\n]{0,199}")
SUBJECTS = Reading("subjects", 1.5)


class _Subject(NamedTuple):
    """What a call was about."""

    same_call: bytes | None
    """The digest of tool and canonical arguments; None without arguments: `next_page {}` gives something else each time."""
    path: tuple[str, ...] = ()
    """Tool and path."""
    whole: bool = False
    """The path is the only argument, so the whole of it was read."""
    written: str = ""
    """The path whose whole content the call set."""


@register("superseded_results", loss="reversible")
class SupersededResults(Stage, frozen=True, forbid_unknown_fields=True):
    """Markers for results that a later call made stale; from `min_tokens` tokens on."""

    min_tokens: Count = 60

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        stale: list[Exchange] = []
        later: set[object] = set()
        answers = [exchange for exchange in transcript.exchanges if exchange.call]
        subjects = context.memo(SUBJECTS, [exchange.head for exchange in answers], _subjects)
        for exchange, known in zip(reversed(answers), reversed(subjects), strict=True):
            entry, subject = transcript.entries[exchange.at], known[exchange.call]
            if not later.isdisjoint((subject.same_call, subject.path, subject.path[1:])):
                if exchange.at < transcript.newest.start and may_edit(entry) and entry.tokens >= self.min_tokens:
                    stale.append(exchange)
            elif entry.origin == "original" and not _failed(text_of(entry.message)):
                later |= _replaces(subject)
        for exchange in reversed(stale):
            entry = transcript.entries[exchange.at]
            yield Replace(exchange.at, self._marked(entry, exchange, context), "superseded by a later result")

    def _marked(self, entry: Entry, exchange: Exchange, context: Context) -> Message:
        return context.rewritten("superseded", entry, lambda: marked(entry, superseded_topic(exchange.call, context.language), context.language))


def _subjects(head: Message) -> dict[ToolCall | None, _Subject]:
    """What each call of a message was about."""
    return {call: _subject(call) for call in tool_calls(head)}


def _subject(call: ToolCall) -> _Subject:
    try:
        arguments = jsontext.decode(call.arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict) or not arguments:
        return _Subject(None)
    same = digest(call.name.encode("utf-8", "surrogatepass") + b"\0" + jsontext.canonical(arguments))
    path = next((arguments[key] for key in PATH_ARGUMENTS if isinstance(arguments.get(key), str) and arguments[key]), None)
    if path is None:
        return _Subject(same)
    writes = path if WRITES.search(call.name) and len(arguments) > 1 else ""
    return _Subject(same, (call.name, path), whole=len(arguments) == 1, written=writes)


def _replaces(subject: _Subject) -> set[object]:
    """The keys of older calls whose results this one makes stale."""
    keys: set[object] = {subject.same_call} if subject.same_call else set()
    if subject.whole:
        keys.add(subject.path)
    if subject.written:
        keys.add((subject.written,))
    return keys


def _failed(text: str) -> bool:
    """A later result that is empty or begins with an error shows nothing in place of the older one."""
    first = FIRST_LINE.search(text)
    return first is None or is_noteworthy(first[0])
