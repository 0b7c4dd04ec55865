"""Old tool results are cleared, oldest first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxproxy.core.messages import Directives, Message, text_of, tool_calls
from ctxproxy.core.stages.clear_tool_uses import ClearToolUses
from ctxproxy.core.transcript import Transcript
from tests.core.histories import FILLER, PNG, assistant, call, context, long_turn, result, tool_call, transcript, user
from tests.core.stages.tables import changed, rewrite

BIG = FILLER * 9
FIVE = [user("go"), *(m for n in range(5) for m in (call(f"c{n}", path=f"f{n}.py"), result(f"c{n}", f"{n} " + BIG)))]
"""Results at 2, 4, 6, 8, 10."""


def stage(**options: Any) -> ClearToolUses:
    return ClearToolUses(**{"trigger_tokens": 0, **options})


LEAVES_ALONE: list[tuple[list[Message], ClearToolUses, tuple[int, ...], str]] = [
    (FIVE, ClearToolUses(), (), "under 100,000 tokens"),
    (FIVE, stage(trigger_tokens=transcript(FIVE).tokens + 1), (), "one token short of the trigger"),
    (FIVE, stage(keep=5), (), "no more than are kept"),
    (FIVE, stage(exclude_tools=("read",)), (), "a tool whose results stay"),
    (FIVE[:3], stage(keep=0), (), "the newest group"),
    (FIVE, stage(), (2, 4), "pinned"),
    ([user("go"), result("x", BIG), result("y", BIG), *FIVE[1:7]], stage(), (), "results without a call"),
    ([user("go"), *(m for n in range(5) for m in (call(f"c{n}"), result(f"c{n}", "ok")))], stage(), (), "shorter than the placeholder"),
]


@pytest.mark.parametrize(("messages", "it", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], it: ClearToolUses, pinned: tuple[int, ...], why: str) -> None:
    assert changed(rewrite(it, messages, context(), pinned)) == [], why


REWRITES: list[tuple[ClearToolUses, list[int], str]] = [
    (stage(trigger_tokens=transcript(FIVE).tokens), [2, 4], "all but the newest three, from the trigger on"),
    (stage(keep=1), [2, 4, 6, 8], "all but one"),
    (stage(keep=0), [2, 4, 6, 8], "but never what is asked right now"),
    (stage(keep=0, clear_at_least=50), [2], "the oldest, until enough is saved"),
    (stage(keep=0, clear_at_least=100), [2, 4], "two of them"),
    (stage(keep=0, exclude_tools=("write",)), [2, 4, 6, 8], "other tools"),
    (stage(keep=3, clear_inputs=True), [2, 4], "arguments too short to gain anything stay"),
]


@pytest.mark.parametrize(("it", "cleared", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(it: ClearToolUses, cleared: list[int], why: str) -> None:
    after = rewrite(it, FIVE, context())
    assert changed(after) == cleared, why
    for at in cleared:
        text = text_of(after[at].message)
        assert text.startswith("[cleared] [COMPACTED: result of read f")
        assert after[at].tip[:16] in text
    assert it.clear_at_least or list(it.propose(Transcript(after), context())) == []


def test_rewrites_arguments_into_a_short_object_with_the_marker() -> None:
    calls = [tool_call("a", arguments=json.dumps({"content": BIG})), tool_call("b", arguments=json.dumps({"content": BIG}))]
    signed = tool_call("s", arguments=json.dumps({"content": BIG}), extra_content={"google": {"thought_signature": "SIG"}})
    head = assistant(None, tool_calls=[*calls, signed])
    messages = [user("go"), head, result("a", BIG), result("b", BIG), result("s", BIG), call("n"), result("n", "new"), user("next")]
    after = rewrite(stage(keep=2, clear_inputs=True), messages, context())
    assert changed(after) == [1, 2, 3]
    arguments = [one.arguments for one in tool_calls(after[1].message)]
    assert [json.loads(one) for one in arguments[:2]] == [{"cleared": after[1].tip[:16]}] * 2
    assert arguments[2] == signed["function"]["arguments"]
    bare = rewrite(stage(keep=3, clear_inputs=True, placeholder="[gone]"), messages, context())
    assert [one.arguments for one in tool_calls(bare[1].message)][1:] == [calls[1]["function"]["arguments"], arguments[2]]
    assert text_of(bare[2].message).startswith("[gone] ")


def test_rewrites_no_arguments_that_the_client_keeps_whole() -> None:
    head = call("a", content=BIG)
    kept = Message(head.raw, head.fields, Directives(never_summarize=True))
    after = rewrite(stage(keep=0, clear_inputs=True), [user("go"), kept, result("a", BIG), user("next")], context())
    assert changed(after) == [2]


def test_rewrites_parts_into_one_with_the_cache_mark() -> None:
    parts = [{"type": "text", "text": BIG, "cache_control": {"type": "ephemeral"}}, {"type": "image_url", "image_url": {"url": PNG}}, "odd"]
    after = rewrite(stage(keep=0), [user("go"), call("a"), result("a", parts), user("next")], context())
    (part,) = after[2].message.fields["content"]
    assert part["cache_control"] == {"type": "ephemeral"}
    assert part["text"].startswith("[cleared] [COMPACTED: ")


def test_rewrites_no_more_than_the_target_asks_for() -> None:
    before = transcript(long_turn(20))
    after = rewrite(stage(), long_turn(20), context(before.tokens - 10))
    assert changed(after) == [2]
