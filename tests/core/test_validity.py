"""The rules of the strictest upstream, in words."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import Message, make
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, call, result, tool_call, user

SYSTEM = make({"role": "system", "content": "s"})
PAIR = [call("a"), result("a", "1")]
TWO = [assistant(None, tool_calls=[tool_call("a"), tool_call("b")]), result("b", "2"), result("a", "1")]
LATE = [call("a"), user("still waiting?"), result("a", "1")]


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], ["the list is empty"]),
        ([SYSTEM, user("q"), *TWO, assistant("x")], []),
        ([user("q"), SYSTEM], ["messages[1] is a system message behind the front"]),
        ([user("q"), result("a", "1")], ["messages[1] answers no call"]),
        ([*PAIR, result("a", "2")], ["messages[2] answers no call"]),
        (LATE, ["messages[1] comes before the answers to a", "messages[2] answers no call"]),
        ([call("a")], ["no answers to a"]),
    ],
)
def test_violations_name_what_a_strict_upstream_refuses(messages: list[Message], found: list[str]) -> None:
    assert violations(messages) == found
