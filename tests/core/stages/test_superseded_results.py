"""Old results that a later call made stale."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.stages.superseded_results import SupersededResults
from tests.core.histories import FILLER, assistant, call, context, result, tool_call, user
from tests.core.stages.tables import changed, rewrite

TEXT = FILLER * 20


def ask(*exchanges: list[Message]) -> list[Message]:
    return [user("q"), *(message for exchange in exchanges for message in exchange), user("now")]


def did(name: str, text: str = TEXT, **arguments: object) -> list[Message]:
    return [call("c", name, **arguments), result("c", text)]


LEAVES_ALONE = [
    (ask(did("read", path="a.py"), did("read", path="b.py")), "other paths"),
    (ask(did("read", path="a.py"), did("read", path="a.py", offset=100)), "the later read is of another part"),
    (ask(did("next_page"), did("next_page")), "no arguments: each call goes on from the last"),
    (ask(did("run", cmd="make"), did("run", cmd="make test")), "other commands"),
    (ask(did("read", path="a.py"), did("read", "", path="a.py")), "the later result is empty"),
    (ask(did("read", path="a.py"), did("read", "Error: no such file", path="a.py")), "the later call failed"),
    (ask(did("read", path="a.py"), did("edit_file", path="a.py", old="x", new="y")), "an edit shows nothing of the rest"),
    (ask(did("read", path="a.py"), did("write_file", path="a.py")), "nothing was written"),
    (ask(did("read", "short", path="a.py"), did("read", path="a.py")), "too short to gain"),
    (ask([assistant(None, tool_calls=[tool_call("c", "read", "no json")]), result("c", TEXT)] * 2), "arguments that are no JSON"),
    ([user("q"), result("lost", TEXT), *did("read", path="a.py")], "a result without a call"),
    ([user("q"), assistant(None, tool_calls=[tool_call("a", "read", '{"path":"x"}'), tool_call("b", "read", '{"path":"x"}')]),
      result("a", TEXT), result("b", TEXT)], "both are in the newest group"),
]  # fmt: skip
REWRITES = [
    (ask(did("read", path="a.py"), did("read", path="a.py")), [2], "read again"),
    (ask(did("read", path="a.py", offset=5), did("read", path="a.py")), [2], "the whole read later"),
    (ask(did("run", cmd="make"), did("run", "1 passed", cmd="make")), [2], "run again, arguments in any order"),
    (ask(did("read", path="a.py"), did("write_file", "ok", path="a.py", content="x")), [2], "written anew"),
    (ask(did("read", path="a.py"), did("write_file", path="a.py", content="x"), did("read", path="a.py")), [2], "written, then read"),
    (ask(did("read", path="a.py"), did("read", path="a.py"), did("read", path="a.py")), [2, 4], "all but the last"),
    (ask(did("read", path="a.py"), did("read", path="a.py"), did("read", "Error", path="a.py")), [2], "the last that did not fail stays"),
]


@pytest.mark.parametrize(("messages", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], why: str) -> None:
    assert changed(rewrite(SupersededResults(), messages)) == [], why


@pytest.mark.parametrize(("messages", "places", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(messages: list[Message], places: list[int], why: str) -> None:
    assert changed(rewrite(SupersededResults(), messages)) == places, why


def test_the_marker_tells_what_it_was_and_that_there_is_a_newer_one() -> None:
    entry = rewrite(SupersededResults(), ask(did("read", path="a.py"), did("read", path="a.py")))[2]
    assert text_of(entry.message) == f"[COMPACTED: result of read a.py, newer one further on · 204 tokens · {entry.tip[:16]}]"


def test_pinned_and_kept_results_and_those_replaced_by_a_marker_of_ours_are_respected() -> None:
    messages = ask(did("read", path="a.py"), did("read", path="a.py"))
    assert changed(rewrite(SupersededResults(), messages, pinned=[2])) == []
    kept = Message(messages[2].raw, messages[2].fields, Directives(never_summarize=True))
    assert changed(rewrite(SupersededResults(), [*messages[:2], kept, *messages[3:]])) == []
    assert changed(rewrite(SupersededResults(min_tokens=300), messages, context())) == []
