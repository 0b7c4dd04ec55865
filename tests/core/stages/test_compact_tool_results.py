"""Old results and arguments."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ctxproxy.core.markers import is_marker, marker_of
from ctxproxy.core.messages import Directives, Message, text_of, tool_calls
from ctxproxy.core.pipeline import run
from ctxproxy.core.stages.base import Context, make_stage
from ctxproxy.core.stages.compact_tool_results import CompactToolResults
from ctxproxy.proxy.counting import Readings
from tests.core.histories import FILLER, call, context, long_turn, result, transcript, user
from tests.core.stages.tables import changed, rewrite

STAGE = CompactToolResults()
MIDDLE, LONG = FILLER * 20, FILLER * 200
FILE = 'def f(x):\n    if x:\n        return  "a   b"\n\n\n    return None\n\tbad_tab = 1\n'


def did(content: object, **arguments: Any) -> list[Message]:
    return [call("c", **arguments), result("c", content)]


LEAVES_ALONE = [
    ([user("q"), *did("short"), user("now")], context(), "too short to gain"),
    ([user("q"), *did(LONG)], context(), "the newest group"),
    ([user("q"), *did(""), user("now")], context(), "empty"),
    ([user("q"), *did(LONG), user("now")], context(10_000, keep_recent_turns=2), "nothing to do within the target"),
    ([user("q"), *did(MIDDLE), user("now")], context(500, 500, keep_recent_turns=2), "in a recent turn"),
    ([user(LONG), user("q"), *did(FILE), user("Rename f to g.")], context(192, 350, keep_recent_turns=4), "recent file content stays exact"),
    ([user("q"), user(LONG), user("now")], context(), "no results at all"),
]


@pytest.mark.parametrize(("messages", "told", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, why: str) -> None:
    assert changed(rewrite(STAGE, messages, told)) == [], why


def test_leaves_pinned_and_kept_results_alone() -> None:
    kept = Message(result("c", LONG).raw, result("c", LONG).fields, Directives(never_summarize=True))
    assert changed(rewrite(STAGE, [user("q"), call("c"), kept, *did(LONG), user("now")], pinned=[4])) == []


def test_a_long_result_keeps_head_and_tail_when_that_is_enough() -> None:
    messages = [user("q"), *did("FIRST " + LONG + " LAST"), user("now")]
    entry = rewrite(STAGE, messages, context(500))[2]
    text = text_of(entry.message)
    assert text.startswith(f"[COMPACTED: result of read · 2007 tokens · {entry.tip[:16]}]\nFIRST plain")
    assert text.endswith(" LAST")
    assert entry.tokens < 400


def test_without_room_for_that_it_becomes_a_marker() -> None:
    entry = rewrite(STAGE, [user("q"), *did(LONG, path="a.py"), user("now")])[2]
    assert text_of(entry.message) == f"[COMPACTED: result of read a.py · 2004 tokens · {entry.tip[:16]}]"
    assert entry.message.fields["tool_call_id"] == "c"


def test_results_go_oldest_first_and_only_as_many_as_needed() -> None:
    messages = [user("q"), *did(MIDDLE), *did(MIDDLE), *did(MIDDLE), *did("new")]
    before = transcript(messages)
    assert changed(rewrite(STAGE, messages, context(before.tokens - 200, keep_recent_turns=0))) == [2, 4]


def test_parts_stay_parts_and_json_stays_json() -> None:
    rows = json.dumps({"rows": [{"id": n} for n in range(1000)], "total": 1000})
    entries = rewrite(
        STAGE, [user("q"), *did([{"type": "text", "text": LONG}, {"type": "text", "text": "exit code 1"}]), *did(rows), user("now")], context(1000)
    )
    assert entries[2].message.content[1] == {"type": "text", "text": "exit code 1"}
    assert json.loads(text_of(entries[4].message))["total"] == 1000


def test_one_message_with_300_calls_is_compacted_but_for_its_newest_part() -> None:
    before = transcript(long_turn(300))
    told = context(before.tokens // 2, keep_recent_turns=4)
    after = run(before, [STAGE], told).transcript
    assert after.tokens <= told.target
    assert changed(after.entries) == list(range(2, 2 + 2 * len(changed(after.entries)), 2))
    assert changed(after.entries)[-1] < 500


def test_long_arguments_of_old_calls_are_cut_and_stay_json() -> None:
    messages = [user("q"), *did("ok", path="a.py", text=LONG), *did("ok", path="b.py", text=LONG)]
    entries = rewrite(STAGE, messages)
    old = json.loads(tool_calls(entries[1].message)[0].arguments)
    assert old["path"] == "a.py"
    assert "characters omitted" in old["text"]
    assert changed(entries) == [1]


def test_what_was_cut_before_becomes_a_marker_when_that_is_not_enough_any_more() -> None:
    before = transcript([user("q"), *did(LONG), user("now")])
    cut = run(before, [STAGE], context(500)).transcript
    assert not is_marker(text_of(cut.entries[2].message))
    assert is_marker(text_of(run(cut, [STAGE], context(50)).transcript.entries[2].message))


LOG = "\n".join([*(f"{FILLER}{n % 3}" for n in range(100)), "E4711 in src/ship.py", *(f"{FILLER}{n % 3}" for n in range(100))])


def test_with_a_share_an_old_result_keeps_what_says_most_of_it() -> None:
    stage = CompactToolResults(gist_share=0.5, gist_tokens=50, keep_tokens=0, markers=False)
    entry = rewrite(stage, [user("q"), *did(LOG, path="a.py"), user("now")])[2]
    mark, *kept = text_of(entry.message).split("\n")
    assert mark.startswith("[COMPACTED: result of read a.py")
    assert "E4711 in src/ship.py" in kept
    assert set(kept) <= set(LOG.split("\n"))
    assert entry.tokens <= 50 + 30
    assert entry.reason == "what says most of an old result"


def test_a_gist_is_made_of_originals_only_and_of_none_that_is_short() -> None:
    stage = CompactToolResults(gist_share=0.5, keep_tokens=0, markers=False)
    once = run(transcript([user("q"), *did(LOG), *did(FILLER * 8), user("now")]), [stage], context())
    assert changed(once.transcript.entries) == [2], "twice min_tokens are 120, the second has about 80"
    assert run(once.transcript, [stage], context()).actions == ()


def test_a_gist_gives_way_to_a_marker_when_that_is_not_enough_and_not_where_markers_are_off() -> None:
    messages = [user("q"), *did(LOG), user("now")]
    lossless, adaptive = CompactToolResults(gist_share=0.5), CompactToolResults(gist_share=0.5, keep_tokens=0, markers=False)
    half = transcript(messages).tokens // 2
    assert "E4711" in text_of(rewrite(lossless, messages, context(half))[2].message)
    assert is_marker(text_of(rewrite(lossless, messages)[2].message))
    assert not is_marker(text_of(rewrite(adaptive, messages)[2].message))


def test_a_short_last_turn_may_be_recent_too() -> None:
    messages = [user("q"), *did(LONG), user("q"), *did(MIDDLE), user("now" + FILLER * 60)]
    told = context(400, 2000, keep_recent_turns=4)
    assert changed(rewrite(STAGE, messages, told)) == [2, 5]
    spares = CompactToolResults(last_turn=True)
    assert changed(rewrite(spares, messages, told)) == [2]
    assert changed(rewrite(spares, messages, replace(told, keep_recent_turns=1))) == [2, 5]
    assert changed(rewrite(spares, messages, replace(told, limit=450))) == [2, 5], "too long a turn for such a window"


def test_what_is_recent_may_be_told_in_messages() -> None:
    messages = [user("q"), *(part for n in range(6) for part in did(LONG, path=f"{n}.py")), user("now")]
    stage = CompactToolResults(keep_tokens=0, recent_messages=5)
    assert changed(rewrite(stage, messages, context(keep_recent_turns=9))) == [2, 4, 6, 8], "of the 14 the last five are 9 to 13; 8 goes to 7"
    assert changed(rewrite(stage, messages[-5:], context())) == []


def test_options_are_checked() -> None:
    assert rewrite(CompactToolResults(keep_tokens=0), [user("q"), *did(LONG), user("now")], context(500))[2].tokens < 40
    with pytest.raises(ValueError, match="compact_tool_results"):
        make_stage({"stage": "compact_tool_results", "keep_tokens": -1})


def test_equal_results_in_two_places_are_each_marked_with_their_own_place() -> None:
    told = replace(context(), memo=Readings(1 << 20))
    once = rewrite(CompactToolResults(gist_share=0.5, keep_tokens=0, markers=False), [user("q"), *did(LOG), user("r"), *did(LOG), user("now")], told)
    first, second = (text_of(once[at].message).split("\n")[0] for at in (2, 5))
    assert marker_of(once[2].tip) in first
    assert marker_of(once[5].tip) in second
    assert first != second


def test_arguments_of_a_message_that_must_stay_are_not_cut() -> None:
    kept = call("c", text=FILLER * 200).with_directives(Directives(never_summarize=True))
    messages = [user("q"), kept, result("c", "done"), call("d", text=FILLER * 200), result("d", "done"), user("now")]
    assert changed(rewrite(STAGE, messages, context())) == [3]
