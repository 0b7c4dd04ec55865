"""The last rung: pins and what is asked right now."""

from __future__ import annotations

import pytest

from ctxproxy.core.markers import acknowledgement
from ctxproxy.core.messages import Message
from ctxproxy.core.stages.clear import Clear
from tests.core.histories import assistant, call, context, result, talk, user
from tests.core.stages.tables import rewrite, texts

NOTE = acknowledgement("en")[:2]
PAIR = [call("c", says="calls"), result("c", "result " * 50)]

LEAVES_ALONE = [
    ([user("now")], (), "nothing but the question"),
    ([user("now"), *PAIR], (), "nothing but the question and the pending exchange"),
    ([user("now"), assistant("{")], (), "a prefill"),
    (talk(1), (0, 1), "all pinned"),
]
REWRITES = [
    (talk(3), (), ["la"], "only the question stays"),
    ([*talk(2), *PAIR, *PAIR], (), ["la", "ca", "re"], "the question and the newest exchange"),
    (talk(3), (2,), ["q1", NOTE, "la"], "a pinned user message with an acknowledgement before the question"),
    (talk(3), (3,), [NOTE, "a1", "la"], "a pinned answer with a note of the user's side before it"),
    ([*talk(2), assistant('{"a":')], (), ["la", '{"'], "the question and its prefill"),
]


@pytest.mark.parametrize(("messages", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], pinned: tuple[int, ...], why: str) -> None:
    assert [e.message for e in rewrite(Clear(), messages, context(), pinned)] == messages, why


@pytest.mark.parametrize(("messages", "pinned", "left", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(messages: list[Message], pinned: tuple[int, ...], left: list[str], why: str) -> None:
    assert texts(rewrite(Clear(), messages, context(), pinned), 2) == left, why
