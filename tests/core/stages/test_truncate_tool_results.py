"""Long results of finished turns."""

from __future__ import annotations

import json

import pytest

from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pipeline import run
from ctxproxy.core.stages.base import Context, make_stage
from ctxproxy.core.stages.truncate_tool_results import TruncateToolResults
from tests.core.histories import FILLER, call, context, result, transcript, user
from tests.core.stages.tables import changed, rewrite

STAGE = TruncateToolResults()
LINES = "\n".join(f"line {n} of the log" for n in range(2000))
SMALL = TruncateToolResults(max_chars=1000)


def did(content: object) -> list[Message]:
    return [call("c", path="a.log"), result("c", content)]


LEAVES_ALONE = [
    ([user("q"), *did("x" * 20_000), user("now")], context(), "20,000 characters are not too many"),
    ([user("q"), *did(LINES)], context(), "in the current turn"),
    ([user("q"), *did(LINES), *did("ok")], context(), "in the current turn, not in its newest group"),
    ([user("q"), *did(LINES), user("now")], context(100_000), "the prompt is within its target"),
    ([user("q"), user(LINES), user("now")], context(), "no result"),
    ([user("q"), *did([{"type": "image_url", "image_url": {"url": "x" * 30_000}}]), user("now")], context(), "no text"),
]


@pytest.mark.parametrize(("messages", "told", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, why: str) -> None:
    assert changed(rewrite(STAGE, messages, told)) == [], why


def test_leaves_pinned_and_kept_results_alone() -> None:
    kept = Message(result("c", LINES).raw, result("c", LINES).fields, Directives(never_summarize=True))
    assert changed(rewrite(STAGE, [user("q"), call("c"), kept, *did(LINES), user("now")], pinned=[4])) == []


def test_one_character_more_and_head_and_tail_stay_around_a_notice_under_a_marker_with_the_length() -> None:
    text = "FIRST " + FILLER * 600
    entry = rewrite(STAGE, [user("q"), *did(text[: 20_001 - 5] + " LAST"), user("now")])[2]
    said = text_of(entry.message)
    assert said.startswith(f"[COMPACTED: result of read a.log, 20001 characters in full · 5005 tokens · {entry.tip[:16]}]\nFIRST plain")
    assert "characters omitted]" in said
    assert said.endswith(" LAST")
    assert 10_000 < len(said) <= 20_000


def test_lines_that_tell_of_failures_stay_and_the_words_are_the_conversations_own() -> None:
    failed = LINES.replace("line 1000 of", "ERROR: disk full in line 1000 of")
    said = text_of(rewrite(STAGE, [user("q"), *did(failed), user("now")], context(language="zh"))[2].message)
    assert "ERROR: disk full in line 1000 of the log" in said
    assert said.startswith(f"[已压缩: read a.log 的结果，原文共 {len(failed)} 个字符 · ")
    assert "此处省略" in said


@pytest.mark.parametrize(
    "rows", [{"rows": [{"id": n, "name": f"row {n}"} for n in range(4000)], "total": 4000}, list(range(9000)), {"deep": [["x"] * 9000]}]
)
def test_json_stays_json_and_is_short_enough(rows: object) -> None:
    said = text_of(rewrite(STAGE, [user("q"), *did(json.dumps(rows)), user("now")])[2].message)
    assert type(json.loads(said)) is type(rows)
    assert len(said) <= 20_000


def test_what_cannot_get_short_enough_stays_as_it_is() -> None:
    keys = json.dumps({f"a rather long key, number {n} of many": n for n in range(4)})
    entries = rewrite(TruncateToolResults(max_chars=30), [user("q"), *did(keys), user("now")])
    assert changed(entries) == []


def test_parts_stay_parts() -> None:
    entry = rewrite(SMALL, [user("q"), *did([{"type": "text", "text": LINES}, {"type": "text", "text": "exit code 1"}]), user("now")])[2]
    assert entry.message.content[1] == {"type": "text", "text": "exit code 1"}
    assert len(text_of(entry.message)) <= 1000


def test_all_are_cut_even_where_one_would_be_enough() -> None:
    messages = [user("q"), *did(LINES), user("q"), *did(LINES), user("now")]
    assert changed(rewrite(STAGE, messages, context(transcript(messages).tokens - 10))) == [2, 5]


def test_what_was_cut_is_not_cut_again() -> None:
    once = run(transcript([user("q"), *did(LINES), user("now")]), [STAGE], context()).transcript
    assert changed(once.entries) == [2]
    assert run(once, [STAGE, SMALL], context()).transcript is once


def test_of_the_current_turn_only_if_told_and_never_the_newest_group() -> None:
    messages = [user("q"), *did(LINES), *did(LINES)]
    assert changed(rewrite(TruncateToolResults(historic_only=False), messages)) == [2]


def test_it_acts_on_a_short_prompt_only_where_turns_are_about_to_be_trimmed() -> None:
    messages = [*(m for n in range(3) for m in (user(f"q{n}"), *did(LINES))), user("now")]
    before = transcript(messages)
    with_limit = Context(*_sizes(before.tokens), max_turns=3)
    assert changed(run(before, [STAGE], with_limit).transcript.entries) == []
    assert changed(run(before, [TruncateToolResults(with_turns=True)], with_limit).transcript.entries) == [2, 5, 8]
    for told in (Context(*_sizes(before.tokens), max_turns=4), Context(*_sizes(before.tokens))):
        assert changed(run(before, [TruncateToolResults(with_turns=True)], told).transcript.entries) == []


def _sizes(limit: int) -> tuple[object, object, int, int]:
    it = context(limit)
    return it.count, it.count_text, limit, limit


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="truncate_tool_results"):
        make_stage({"stage": "truncate_tool_results", "max_chars": 0})
