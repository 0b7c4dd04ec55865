from __future__ import annotations

import pytest

from ctxproxy.core.messages import Message
from ctxproxy.core.policy import Policy
from ctxproxy.core.steps import at_limit, steps_taken, stopped
from tests.core.histories import assistant, call, result, tool_call, user


def work(steps: int) -> list[Message]:
    """A question and so many calls with their results."""
    return [user("find it"), *(message for n in range(steps) for message in (call(f"c{n}", path=f"f{n}"), result(f"c{n}", "found")))]


TWO_AT_ONCE = assistant(None, tool_calls=[tool_call("a", "read", "{}"), tool_call("b", "read", "{}")])


@pytest.mark.parametrize(
    ("history", "taken"),
    [
        ([], 0),
        ([user("q")], 0),
        ([user("q"), assistant("a")], 0),
        (work(3), 3),
        ([*work(3), user("and?")], 0),
        ([*work(3), user("and?"), *work(2)[1:]], 2),
        ([user("q"), TWO_AT_ONCE, result("a", "x"), result("b", "y")], 1),
        ([user("q"), call("c0"), result("c0", "x"), assistant("a thought"), call("c1"), result("c1", "y")], 2),
    ],
)
def test_a_step_is_a_message_with_calls_in_the_newest_turn(history: list[Message], taken: int) -> None:
    assert steps_taken(history) == taken


@pytest.mark.parametrize(("steps", "limit", "reached"), [(14, 15, False), (15, 15, True), (16, 15, True), (16, None, False)])
def test_the_step_after_the_last_allowed_one_is_at_the_limit(steps: int, limit: int | None, *, reached: bool) -> None:
    assert at_limit(Policy(max_steps=limit), work(steps)) is reached


def test_the_model_is_stopped_only_where_that_was_asked_for_and_never_while_only_observed() -> None:
    assert not stopped(Policy(max_steps=2), work(2))
    assert stopped(Policy(max_steps=2, stop_at_max_steps=True), work(2))
    assert not stopped(Policy(max_steps=2, stop_at_max_steps=True), work(1))
    assert not stopped(Policy(max_steps=2, stop_at_max_steps=True, observe=True), work(2))
