"""The rows that a store holds."""

from __future__ import annotations

import msgspec
import pytest

from ctxproxy.core.messages import ROOT
from ctxproxy.core.records import NOTHING_SPENT, Checkpoint, FrozenEntry, SessionKey, Span, Spent, StoredMessage, runs_of, span_of
from tests.contract import samples


def test_a_session_is_known_in_public_by_the_first_digits_of_its_tenant_and_its_name() -> None:
    assert SessionKey("0123456789abcdef" * 2, "talk: one").id == "01234567:talk: one"


def test_a_stored_message_is_read_once_and_an_erased_one_has_only_its_role() -> None:
    row = StoredMessage("ab" * 16, "", b'{"role":"user","content":"hi","x_context":{"pin":true}}', "user", 1, 1.0)
    assert row.message.fields == {"role": "user", "content": "hi"}
    assert row.message.directives.pin
    assert row.message is row.message
    assert row == StoredMessage("ab" * 16, "", row.raw, "user", 1, 1.0)
    assert StoredMessage("ab" * 16, "", b"", "tool", 1, 1.0).message.fields == {"role": "tool"}


@pytest.mark.parametrize("codec", [msgspec.msgpack, msgspec.json])
def test_a_checkpoint_survives_being_stored_whatever_bytes_it_holds(codec: object) -> None:
    entries = (FrozenEntry("ab" * 16, None, 7), FrozenEntry("", b'{"content":"\\ud83c \xe9\x94\x99"}', 9, "summarize", ("cd" * 16, "ef" * 16)))
    made = Checkpoint("ab" * 16, "variant", entries, 1234.5, "cd" * 16, (("summarize", 1),))
    assert codec.decode(codec.encode(made), type=Checkpoint) == made  # type: ignore[attr-defined]


def test_what_was_spent_adds_up_figure_by_figure() -> None:
    assert Spent(1.5, 2, 3, 4, 5, 6, 7) + Spent(10, 20, 30.25, 40, 50, 60, 70) == Spent(11.5, 22, 33.25, 44, 55, 66, 77)
    assert Spent(1, 2) + NOTHING_SPENT == Spent(1, 2)


def test_messages_are_parted_where_one_does_not_follow_the_one_before() -> None:
    first, second = samples.chain("a", "b")
    choices = [samples.message(text, second.tip) for text in ("c", "d")]
    runs = runs_of([first, second, *choices])
    assert runs == [[first, second, choices[0]], [choices[1]]]
    assert [span_of(run) for run in runs] == [Span(ROOT, choices[0].tip), Span(second.tip, choices[1].tip)]
    assert runs_of([]) == []
