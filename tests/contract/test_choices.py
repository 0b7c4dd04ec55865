"""What is chosen for a session, in every store: whose it is, kept or not, cleared up to where, settings of its own, a tag."""

from __future__ import annotations

from typing import Any

import pytest

from ctxproxy.core.effects import Choose, OpenSession
from ctxproxy.core.records import Session
from tests.contract.conftest import Handles
from tests.contract.samples import KEY, message


async def test_a_session_belongs_to_the_user_named_last_and_a_request_without_one_changes_nothing(stores: Handles) -> None:
    for user, expected in (("", ""), ("ann", "ann"), ("", "ann"), ("bob\ud83c", "bob\ud83c")):
        await stores.write.apply([OpenSession(KEY, 1.0, user=user)])
        session = await stores.read.session(KEY)
        assert session and session.user == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"kept": True}, {"kept": True}),
        ({"cleared": (message("a").tip, message("b").tip)}, {"cleared": (message("a").tip, message("b").tip)}),
        ({"overrides": {"max_tokens": 8000, "preset": "trim"}}, {"overrides": {"max_tokens": 8000, "preset": "trim"}}),
        ({"tag": "客服\ud83c"}, {"tag": "客服\ud83c"}),
        ({}, {}),
    ],
)
async def test_each_choice_is_kept_by_itself(stores: Handles, change: dict[str, Any], expected: dict[str, Any]) -> None:
    before = {"kept": False, "cleared": (), "overrides": {"max_turns": 3}, "tag": "old"}
    await stores.write.apply([OpenSession(KEY, 1.0), Choose(KEY, **before)])
    assert await stores.write.apply([Choose(KEY, **change)])
    assert await stores.read.session(KEY) == Session(KEY, created=1.0, last_used=1.0, **{**before, **expected})


async def test_a_choice_can_be_taken_back(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0), Choose(KEY, kept=True, cleared=("aa",), overrides={"max_turns": 3}, tag="x")])
    await stores.write.apply([Choose(KEY, kept=False, cleared=(), overrides={}, tag="")])
    assert await stores.read.session(KEY) == Session(KEY, created=1.0, last_used=1.0)


async def test_nothing_is_chosen_for_a_session_that_is_not_there(stores: Handles) -> None:
    assert await stores.write.apply([Choose(KEY, kept=True)])
    assert await stores.read.session(KEY) is None
