"""What became of each message of a history, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

import ctxproxy.core.stages
from ctxproxy.core.applying import apply
from ctxproxy.core.fates import Fate, fates, whys
from ctxproxy.core.frames import Background, acknowledgement, frame_text, said
from ctxproxy.core.messages import Directives, Message, read
from ctxproxy.core.plan import compacted_now, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import LeftOut
from ctxproxy.core.situation import Situation
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.transcript import Fold, Replace, Span, Transcript
from tests.core.chains import Chain, stored
from tests.core.histories import assistant, count, long_turn, result, talk, tool_call, user

FRAME = said("user", frame_text(Background("They spoke."), "en"))


def planned(history: list[Message]) -> tuple[Situation, Plan]:
    """A plan that sends the whole history."""
    situation = Chain(Policy()).situation(history, 100_000)
    return situation, plan(situation)


def states(found: tuple[Fate, ...]) -> list[str]:
    return [fate.state for fate in found]


@pytest.mark.parametrize("preset", ["adaptive", "lossless", "off"])
def test_what_fits_is_sent_as_it_is(preset: str) -> None:
    situation = Chain(Policy(preset=preset)).situation(talk(3), 100_000)  # type: ignore[arg-type]
    found = fates(situation, plan(situation))
    assert {fate.why for fate in found[:-1]} == {"fits: the whole history is sent as it is"}
    assert found[-1].why == "the last user message: never changed"
    assert [(fate.tokens_after, fate.entry, fate.stage) for fate in found] == [(n, at, "") for at, n in enumerate(situation.counts)]


def test_where_nothing_can_be_done_it_is_told() -> None:
    situation = Chain(Policy(preset="off")).situation(talk(30), 300)
    assert fates(situation, plan(situation))[0].why == "no stage could shorten it"


def test_why_an_original_stands_is_the_rule_that_keeps_it() -> None:
    history = [*talk(8)[:-1], user("pinned", Directives(pin=True)), assistant("yes"), *long_turn(1)]
    situation, made = planned(history)
    cut = apply(made.transcript, [Fold(Span(0, 2), (), "too old")], "drop_oldest", count)
    found = fates(situation, replace(made, transcript=cut, changed=True))
    assert found[0].why == found[1].why == "left out by drop_oldest (lossy): too old"
    assert found[2].why == "fits beside what was changed"
    assert [fate.why for fate in found if fate.role == "user" and fate.tip][-2:] == ["pinned: never changed", "the last user message: never changed"]
    assert found[-1].why == "in the newest group: never left out"
    assert "recent: in the newest 4 turns" in [fate.why for fate in found]
    everything = Chain(Policy(keep_recent_turns=0)).situation(history, 100_000)
    assert "recent" not in str(whys(everything, replace(made, transcript=cut, changed=True)))


def test_edited_covered_and_left_out_messages_name_the_stage_and_its_reason() -> None:
    situation, made = planned(talk(4))
    edits = [
        Fold(Span(0, 2), (FRAME, acknowledgement("en")), "summary"),
        Fold(Span(4, 6), (), "told in the summary"),
        Replace(3, assistant("a1"), "old"),
    ]
    done = apply(made.transcript, edits, "summarize", count)
    found = fates(situation, replace(made, transcript=done, changed=True))
    assert states(found) == ["summarized", "summarized", "sent", "compacted", "summarized", "summarized", "sent", "sent", "sent"]
    assert [(fate.entry, fate.why) for fate in found[:2]] == [(0, "summarized by summarize: summary")] * 2
    assert (found[3].entry, found[3].why) == (3, "shortened by summarize (lossy): old; the original is kept")
    assert [(fate.entry, fate.why) for fate in found[4:6]] == [(0, "summarized by summarize: told in the summary")] * 2
    assert whys(situation, replace(made, transcript=done, changed=True))[0] == "inserted by summarize in place of 2 messages: summary"
    assert whys(situation, replace(made, transcript=done, changed=True))[1] == "inserted by summarize: summary"
    assert sum(fate.tokens_after for fate in found) + sum(e.tokens for e in done.entries if not e.tip) == done.tokens


def test_a_word_between_two_messages_tells_nothing_of_what_it_covers() -> None:
    situation, made = planned(talk(4))
    done = apply(made.transcript, [Fold(Span(1, 4), (acknowledgement("en"),))], "drop_oldest", count)
    found = fates(situation, replace(made, transcript=done, changed=True))
    assert states(found)[:5] == ["sent", "dropped", "dropped", "dropped", "sent"]
    assert (found[1].entry, found[1].why, found[1].stage) == (1, "left out by drop_oldest (lossy)", "drop_oldest")


def test_a_summary_that_another_stage_shortened_still_tells() -> None:
    situation, made = planned(talk(4))
    done = apply(made.transcript, [Fold(Span(0, 4), (FRAME, acknowledgement("en")))], "summarize", count)
    cut = apply(done, [Replace(0, said("user", frame_text(Background("They."), "en")), "long text")], "aggressive_trim", count)
    found = fates(situation, replace(made, transcript=cut, changed=True))
    assert states(found)[:4] == ["summarized"] * 4
    assert found[0].why == "summarized by aggressive_trim: long text"


def test_a_summary_told_by_a_message_that_stays_is_found_there() -> None:
    situation, made = planned(talk(4))
    edits = [Fold(Span(0, 4), (), "told in the next message"), Replace(4, user("They spoke. q2"), "with the summary before it")]
    done = apply(made.transcript, edits, "summarize", count)
    found = fates(situation, replace(made, transcript=done, changed=True))
    assert [(fate.state, fate.entry) for fate in found[:5]] == [("summarized", 0)] * 4 + [("compacted", 0)]


def test_what_only_a_lost_summary_told_is_dropped() -> None:
    situation, made = planned(talk(4))
    done = apply(made.transcript, [Fold(Span(0, 2), (FRAME, acknowledgement("en"))), Fold(Span(4, 6), ())], "summarize", count)
    gone = apply(done, [Fold(Span(0, 2), (), "the oldest go first")], "drop_oldest", count)
    found = fates(situation, replace(made, transcript=gone, changed=True))
    assert (found[0].state, found[0].stage) == ("dropped", "drop_oldest")
    assert (found[4].state, found[4].why) == ("dropped", "left out by summarize (lossy): the summary that told of it is left out too")


def test_what_an_older_decision_does_not_tell_is_dropped_all_the_same() -> None:
    situation, made = planned(talk(2))
    found = fates(situation, replace(made, transcript=Transcript(made.transcript.entries[2:]), changed=True))
    assert (found[0].state, found[0].stage, found[0].entry) == ("dropped", "", None)
    assert found[0].why == "left out by an earlier decision that does not say more"


def test_what_a_stage_that_is_gone_did_is_lossy() -> None:
    situation, made = planned(talk(2))
    entry = made.transcript.entries[0]._replace(origin="edited", stage="once_there")
    found = fates(
        situation, replace(made, transcript=Transcript((entry, *made.transcript.entries[1:]), (LeftOut(("ff",), "once_there"),)), changed=True)
    )
    assert found[0].why == "shortened by once_there (lossy); the original is kept"


def test_forgotten_and_expired_messages_say_so() -> None:
    chain = Chain(Policy())
    history = [user("old", Directives(expire_after_turns=1)), assistant("yes"), *talk(3)]
    situation = replace(chain.situation(history, 100_000), forgotten=frozenset({chain.situation(history, 100_000).reconciled.tips[3]}))
    found = fates(situation, plan(situation))
    assert (found[0].state, found[0].stage, found[0].why) == ("dropped", "forget", "left out by forget (lossy): forgotten or expired, with its group")
    assert (found[3].state, found[3].stage) == ("dropped", "forget")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_replayed_decision_tells_the_same_of_every_message(as_json: bool) -> None:
    situation = Chain(Policy(keep_recent_turns=1)).situation([*talk(30)[:-1], *long_turn(3)], 900)
    made = plan(situation)
    assert made.checkpoint is not None
    again = plan(replace(situation, checkpoints=[stored(made.checkpoint, as_json=as_json)]))
    assert again.checkpoint is None
    assert fates(situation, again) == fates(situation, made)
    assert {"summarized", "sent"} <= set(states(fates(situation, again)))


NAMES = sorted(set(ctxproxy.core.stages.__all__) & set(REGISTRY))
ACTIVE: dict[str, dict[str, int]] = {
    "clear_tool_uses": {"trigger_tokens": 100},
    "truncate_tool_results": {"max_chars": 200},
    "turns_to_text": {"below_turns": 100},
}
"""Options under which a stage acts on a history this short."""


def varied() -> list[Message]:
    """A history in which each of the stages finds something: repeated reads, long results and texts, media, long arguments."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0K" * 200}}
    messages: list[Message] = []
    for n in range(12):
        content = f"the same text of a file, line after line, {'words and words ' * 60}" + (f" {n}" if n % 2 else "")
        messages += [
            user([{"type": "text", "text": f"look at picture {n}"}, picture]) if n % 5 == 1 else user(f"question {n} " + "with many words " * 60),
            assistant(None, tool_calls=[tool_call(f"c{n}", "read", '{"path": "a.py", "note": "' + "x" * 3000 + '"}')]),
            result(f"c{n}", content),
            assistant(f"answer {n} " + "with as many words " * 60),
        ]
    return [
        *messages,
        user("the question now"),
        assistant(None, tool_calls=[tool_call("cc", "read", '{"path": "b.py"}')]),
        result("cc", "words " * 2000),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_each_stage_tells_of_every_message_what_became_of_it_and_the_tokens_add_up(name: str) -> None:
    situation = Chain(Policy(pipeline=({"stage": name, **ACTIVE.get(name, {})},), keep_recent_turns=1, max_turns=6)).situation(varied(), 2500)
    made = compacted_now(situation)
    found = fates(situation, made)
    assert made.failed == ()
    assert {fate.state for fate in found} != {"sent"}, "the stage found nothing to do"
    assert all(fate.why and fate.state for fate in found)
    changed = [fate for fate in found if fate.state != "sent"]
    assert {fate.stage for fate in changed} == {name}
    assert [fate.why for fate in changed if ": " not in fate.why] == [], "an edit without a reason"
    assert [fate.tokens_before for fate in found] == list(situation.counts)
    assert sum(fate.tokens_after for fate in found) + sum(e.tokens for e in made.transcript.entries if not e.tip) == made.transcript.tokens
    assert dict(made.saved) == {name: made.tokens_in - made.tokens_sent}


def test_a_pinned_message_is_never_reported_as_changed() -> None:
    history = [user("keep this", Directives(pin=True)), *varied()]
    situation = Chain(Policy(pipeline=({"stage": "clear"},))).situation(history, 2500)
    found = fates(situation, compacted_now(situation))
    assert (found[0].state, found[0].why) == ("sent", "pinned: never changed")
    assert read(history[0].raw).role == "user"
