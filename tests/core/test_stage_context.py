"""What a stage knows where nobody says otherwise."""

from __future__ import annotations

from ctxproxy.core.messages import Message
from ctxproxy.core.policy import Policy, SummarizerPolicy
from ctxproxy.core.stage_context import Context
from ctxproxy.core.transcript import Entry
from ctxproxy.proxy.counting import Readings
from tests.core.histories import count, count_text, user


def test_what_is_not_told_is_as_an_empty_configuration_has_it() -> None:
    told, policy, summarizer = Context(count, count_text, 100, 55), Policy(), SummarizerPolicy()
    assert (told.keep_recent_turns, told.max_turns) == (policy.keep_recent_turns, policy.max_turns)
    assert (told.summarizer, told.summary_max_tokens) == (summarizer.kind, summarizer.max_tokens)
    assert not (told.originals or told.summaries or told.pins or told.rules)


def test_what_is_made_of_an_entry_is_remembered_by_its_place() -> None:
    made: list[str] = []
    context, said = Context(count, count_text, 100, 55, memo=Readings(1 << 20)), user("a")

    def make() -> Message:
        made.append("made")
        return user("b")

    entries = [Entry(said, 5, "aa"), Entry(user("a"), 5, "aa"), Entry(said, 5, "bb"), Entry(said, 6, "aa"), Entry(said, 5), Entry(said, 5)]
    assert [context.rewritten("cut 3", entry, make).raw for entry in entries] == [user("b").raw] * 6
    assert len(made) == 5  # the second is the first again; without a place nothing is remembered
    assert context.rewritten("cut 4", entries[0], make) == user("b")
    assert len(made) == 6


def test_an_entry_that_stays_as_it_is_stays_the_same_message() -> None:
    context = Context(count, count_text, 100, 55, memo=Readings(1 << 20))
    first, again = Entry(user("a"), 5, "aa"), Entry(user("a"), 5, "aa")
    assert context.rewritten("cut", first, lambda: first.message) is first.message
    assert context.rewritten("cut", again, lambda: user("other")) is again.message
