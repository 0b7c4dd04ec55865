"""Leaving messages out for good."""

from __future__ import annotations

import pytest

from ctxproxy.core.forgetting import STAGE, expired, without
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.transcript import violations
from tests.core.histories import assistant, call, count, result, transcript, user

HISTORY = [user("a"), call("c"), result("c", "x"), assistant("b"), user("d"), assistant("e"), user("f"), assistant("g"), user("h")]
GONE = [
    ([2], "ab", "defgh", "a call goes with its result"),
    ([1, 2, 3], "a", "defgh", "roles stay in turn where both sides are the user's"),
    ([5, 6, 7], "abd", "h", "neighbours leave one gap"),
    ([0], "", "bdefgh", "the beginning"),
    ([8], "abdefg", "", "the end"),
    ([4, 5], "ab", "fgh", "a whole turn leaves no gap"),
]


@pytest.mark.parametrize(("gone", "before", "after", "why"), GONE, ids=[row[-1] for row in GONE])
def test_messages_go_with_their_groups_and_roles_stay_in_turn(gone: list[int], before: str, after: str, why: str) -> None:
    whole = transcript(HISTORY)
    left = without(whole, {whole.entries[at].tip for at in gone}, count)
    stay = {entry.tip for entry in left.entries}
    (told,) = left.left
    assert (told.stage, set(told.tips)) == ("forget", {entry.tip for entry in whole.entries} - stay)
    words = "".join(text_of(entry.message) for entry in left.entries if entry.origin == "original" and entry.message.role != "tool")
    assert words == before + after, why
    messages = [entry.message for entry in left.entries]
    assert violations(messages) == []
    assert alternates(messages)
    assert messages[0].role == "user"
    gaps = [entry for entry in left.entries if entry.origin == "inserted"]
    assert all((gap.stage, gap.tip, gap.tokens) == (STAGE, "", count(gap.message)) for gap in gaps)
    assert len(gaps) <= 1


def test_what_is_not_there_cannot_go() -> None:
    whole = transcript(HISTORY)
    assert without(whole, {"ff" * 16}, count) == whole


def test_a_message_expires_when_so_many_user_messages_have_come_after_its_turn() -> None:
    def history(later: int) -> list[Message]:
        noted = [user("weather: rain", Directives(expire_after_turns=2)), Message(b"{}", assistant("x").fields, Directives(expire_after_turns=3))]
        return [*noted, *(user(str(n)) for n in range(later))]

    def places(later: int) -> list[int]:
        tips = [str(n) for n in range(later + 2)]
        return sorted(int(tip) for tip in expired(history(later), tips))

    assert [places(later) for later in range(4)] == [[], [], [0], [0, 1]]
    assert expired([user("a"), user("b")], ["1", "2"]) == frozenset()
