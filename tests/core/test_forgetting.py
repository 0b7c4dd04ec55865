"""Leaving messages out for good."""

from __future__ import annotations

import pytest

from ctxproxy.core.forgetting import CLEARED, STAGE, cleared, expired, without
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.validity import violations
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


CLEARINGS = [
    ("ababa", [3], 4, "all up to where it was cleared"),
    ("ababa", [1, 3, 9], 4, "the newest of several on this branch counts"),
    ("ababa", [9], 0, "another branch was cleared"),
    ("ababa", [], 0, "nothing was"),
    ("abab", [3], 2, "the last user message stays when it is asked once more"),
    ("aba", [2], 2, "also where it got no answer"),
    ("bb", [1], 2, "there is none"),
]


@pytest.mark.parametrize(("roles", "at", "gone", "why"), CLEARINGS, ids=[row[-1] for row in CLEARINGS])
def test_a_cleared_conversation_goes_on_with_what_comes_after(roles: str, at: list[int], gone: int, why: str) -> None:
    history = [user(str(n)) if role == "a" else assistant(str(n)) for n, role in enumerate(roles)]
    tips = [str(n) for n in range(len(roles))]
    assert cleared(history, tips, [str(n) for n in at]) == set(tips[:gone]), why


def test_what_was_cleared_is_told_as_such() -> None:
    whole = transcript(HISTORY)
    (told,) = without(whole, {whole.entries[0].tip}, count, CLEARED).left
    assert (told.stage, told.reason) == (CLEARED, "the conversation was cleared up to here")
