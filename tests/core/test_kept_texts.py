"""What stands in a prompt whatever the stages took out: where lost rules go, how many, and who keeps none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxproxy.core.frames import Background, frame_text, parse
from ctxproxy.core.kept_texts import LEFT_OUT, STAGE, Stated, narrowed, rules_room, strongest, with_kept, with_rules
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.stages.aggressive_trim import AggressiveTrim
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.clear import Clear
from ctxproxy.core.stages.compact_messages import CompactMessages
from ctxproxy.core.stages.drop_oldest import DropOldest
from ctxproxy.core.standing_rules import Rule
from ctxproxy.core.transcript import Entry, Transcript
from ctxproxy.core.validity import violations
from tests.core.chains import Chain
from tests.core.histories import FILLER, assistant, count, count_text, talk, transcript, user


def story(*rules: str, turns: int = 12) -> Transcript:
    """Rules one after another, then talk."""
    said = [part for rule in rules for part in (user(rule), assistant("Fine."))]
    return transcript([*said, *talk(turns, words=4)])


def context(before: Transcript, limit: int, **more: object) -> Context:
    originals = {entry.tip: entry.message for entry in before.entries if entry.tip}
    return Context(count, count_text, limit, limit * 55 // 100, keep_recent_turns=2, originals=originals, **more)  # type: ignore[arg-type]


def dropped(before: Transcript, limit: int, room: int = 200, **more: object) -> Outcome:
    return with_kept(before, context(before, limit, **more), room, lambda transcript, told: run(transcript, [DropOldest()], told))


def texts(outcome: Outcome | Transcript) -> list[str]:
    held = outcome.transcript if isinstance(outcome, Outcome) else outcome
    return [text_of(entry.message) for entry in held.entries]


def stated(*rules: str) -> list[Stated]:
    return [Stated(Rule(rule, 3.0, at), "") for at, rule in enumerate(rules)]


def test_rules_of_dropped_messages_stand_in_a_frame_at_the_head() -> None:
    outcome = dropped(story("Hello there.", "Never push to main.", "不要用红色。"), 400)
    frame, acknowledgement, *_ = outcome.transcript.entries
    background = parse(text_of(frame.message))
    assert background is not None
    assert background.rules == ("Never push to main.", "不要用红色。")
    assert (frame.stage, frame.origin, acknowledgement.message.role) == (STAGE, "inserted", "assistant")
    assert violations([entry.message for entry in outcome.transcript.entries]) == []
    assert outcome.transcript.tokens <= 400
    assert [name for name, _ in outcome.actions] == ["drop_oldest"]


def test_what_still_stands_as_it_was_said_needs_no_frame() -> None:
    before = transcript([*talk(12, words=4)[:-1], user("Never push to main."), assistant("Fine."), user("last?")])
    outcome = dropped(before, 400)
    assert len(outcome.transcript.entries) < len(before.entries)
    assert all(entry.stage != STAGE for entry in outcome.transcript.entries)


def test_a_shortened_message_gets_the_rules_back_that_were_cut_out_of_it() -> None:
    for content in (long := f"{FILLER * 60}. Never push to main. {FILLER * 60}", [{"type": "text", "text": long}]):
        before = transcript([user(content), *talk(6)])
        outcome = with_kept(before, context(before, 800), 200, lambda transcript, told: run(transcript, [CompactMessages()], told))
        first = outcome.transcript.entries[0]
        assert first.origin == "edited"
        assert text_of(first.message).endswith("- Never push to main.")
        assert first.tokens == count(first.message) < before.entries[0].tokens
        assert [entry.stage for entry in outcome.transcript.entries].count(STAGE) == 0


def test_a_frame_that_is_there_holds_them_too_and_lets_go_what_was_taken_back() -> None:
    frame = Entry(
        user(frame_text(Background("They spoke.", rules=("Never use tabs.", "Never push.")), "en")), 60, origin="inserted", stage="summarize"
    )
    held = Transcript((frame, *story(turns=2).entries))
    changed = with_rules(held, stated("Never push.", "Never pull."), count, "zh")
    background = parse(texts(changed)[0])
    assert background == Background("They spoke.", rules=("Never push.", "Never pull."))
    assert changed.entries[1:] == held.entries[1:]
    assert with_rules(changed, stated("Never push.", "Never pull."), count, "zh") is changed


def test_only_one_frame_of_several_holds_rules() -> None:
    frames = [Entry(user(frame_text(Background("x", rules=("Never pull.",)), "en")), 30, origin="inserted", stage="summarize") for _ in "ab"]
    done = with_rules(Transcript((*frames, *story(turns=1).entries)), stated("Never pull."), count, "en")
    assert [background.rules for text in texts(done) if (background := parse(text))] == [("Never pull.",), ()]


def test_the_surest_and_newest_rules_stay_where_there_is_no_room_for_all_and_the_rest_is_told() -> None:
    rules = [Stated(Rule(text, weight, at), "") for at, (text, weight) in enumerate([("I prefer tea.", 1.5), ("Never a.", 3.0), ("Never b.", 3.0)])]
    assert [one.rule.text for one in strongest(rules, 9, count_text)] == ["Never a.", "Never b."]
    assert [one.rule.text for one in strongest(rules, 4, count_text)] == ["Never b."]
    assert strongest(rules, 1, count_text) == []
    outcome = dropped(story(*(f"Never push to branch-{n} without review." for n in range(40))), 700, room=100)
    assert dict(outcome.actions)[LEFT_OUT] > 25
    assert len(outcome.saved) == len(outcome.actions)
    assert "branch-39" in texts(outcome)[0]
    assert "branch-0 " not in texts(outcome)[0]


def test_rules_never_make_a_prompt_too_long_that_fits_without_them() -> None:
    before = story(*(f"Never push to branch-{n} without review." for n in range(40)), turns=4)
    for limit in range(60, 900, 40):
        bare = run(before, [DropOldest()], context(before, limit)).transcript.tokens
        assert dropped(before, limit, room=300).transcript.tokens <= max(limit, bare + limit // 10)


def test_where_all_would_be_no_shorter_the_rules_stay_out() -> None:
    before = transcript([user("Never push to main."), assistant("ok"), user("go on")])
    outcome = with_kept(before, context(before, 1), 100, lambda transcript, told: run(transcript, [Clear()], told))
    assert texts(outcome) == ["go on"]
    roomy = replace(context(before, 10_000), target=0)
    assert texts(with_kept(before, roomy, 100, lambda transcript, told: run(transcript, [Clear()], told))) == ["go on"]
    pinned = with_kept(before, context(before, 1, pins=["Never push to main."]), 100, lambda transcript, told: run(transcript, [Clear()], told))
    assert pinned.transcript is before


def test_what_no_stage_changes_stays_the_very_same() -> None:
    before = transcript([user("Never push. Forget that."), *talk(2)])
    assert dropped(before, 10_000).transcript is before


def test_the_frame_of_an_earlier_decision_is_made_anew_not_piled_up() -> None:
    first = dropped(story("Hello.", "Never push to main."), 400).transcript
    later = Transcript((*first.entries, *transcript(talk(9, words=4)).entries))
    told = {entry.tip: entry.message for entry in story("Hello.", "Never push to main.").entries}
    again = with_kept(later, context(later, 400), 200, lambda transcript, held: run(transcript, [DropOldest()], held))
    assert "Never push to main." not in "".join(texts(again)), "the originals do not hold it: it was forgotten or let expire"
    kept = Context(count, count_text, 400, 220, originals={**told, **context(later, 1).originals})
    whole = with_kept(later, kept, 200, lambda transcript, held: run(transcript, [DropOldest()], held))
    assert "".join(texts(whole)).count("Never push to main.") == 1


def test_a_frame_tells_the_rules_where_the_originals_are_not_at_hand() -> None:
    held = Background("", ("Never shout.",), ("Never push to main.",))
    frame = Entry(user(frame_text(held, "en")), 60, origin="inserted", stage="summarize", covers=("gone",))
    before = Transcript((frame, assistant_entry(), *story("Never pull.").entries))
    outcome = dropped(before, 300)
    background = parse(texts(outcome)[0])
    assert background is not None
    assert background.words == ("Never shout.",)
    assert background.rules == ("Never push to main.", "Never pull.")
    bare = with_kept(before, Context(count, count_text, 300, 200), 200, lambda transcript, told: run(transcript, [DropOldest()], told))
    assert parse(texts(bare)[0]) == background


def assistant_entry() -> Entry:
    return Entry(assistant("Understood."), 7, origin="inserted", stage="summarize")


def test_what_matters_little_goes_first() -> None:
    little = [user("My cat is grey, by the way: " + FILLER * 6), assistant("Nice."), user("That is not important."), assistant("Fine.")]
    before = transcript([user("Build a shop."), assistant("Sure."), user("Add a cart."), assistant("Done."), *little, *talk(2)])
    outcome = just_enough(before)
    assert not any("cat is grey" in text for text in texts(outcome))
    assert any("Add a cart." in text for text in texts(outcome))
    pinned = Transcript(tuple(entry if "cat" not in text_of(entry.message) else pin(entry) for entry in before.entries))
    assert any("cat is grey" in text for text in texts(just_enough(pinned)))


def test_the_first_decision_of_a_history_lets_what_matters_little_go_first() -> None:
    little = [user("My cat is grey, by the way: " + FILLER * 6), assistant("Nice."), user("That is not important."), assistant("Fine.")]
    history = [user("Build a shop."), assistant("Sure."), user("Add a cart."), assistant("Done."), *little, *talk(30)]
    made = plan(Chain(Policy(), []).situation(history, 900))
    assert made.transcript.tokens <= 900
    assert text_of(little[0]) not in texts(made.transcript)


def just_enough(before: Transcript) -> Outcome:
    told = replace(context(before, before.tokens), target=before.tokens - 30)
    return with_kept(before, told, 200, lambda transcript, held: run(transcript, [DropOldest()], held))


def pin(entry: Entry) -> Entry:
    return Entry(entry.message, entry.tokens, entry.tip, pinned=True)


def test_an_assistant_message_at_the_head_needs_no_acknowledgement() -> None:
    done = with_rules(transcript([assistant("hi"), user("go on")]), stated("Never pull."), count, "en")
    assert [entry.message.role for entry in done.entries] == ["user", "assistant", "user"]
    assert [entry.message.role for entry in with_rules(transcript([]), stated("Never pull."), count, "en").entries] == ["user"]


@pytest.mark.parametrize(
    ("policy", "limit", "room"),
    [
        (Policy(), 10_000, 3000),
        (Policy(), 200, 100),
        (Policy(), 100, 50),
        (Policy(preset="off"), 10_000, 0),
        (Policy(preset="trim"), 10_000, 0),
        (Policy(preset="delete"), 10_000, 0),
        (Policy(preset="off", pipeline=({"stage": "drop_oldest"},)), 10_000, 3000),
    ],
)
def test_how_much_room_rules_have(policy: Policy, limit: int, room: int) -> None:
    assert rules_room(policy, limit) == room


def test_a_preset_that_demands_deletion_keeps_none() -> None:
    outcome = dropped(story("Never push to main.", "Never pull."), 300, room=0)
    assert "Never p" not in "".join(texts(outcome)[1:])
    assert LEFT_OUT not in dict(outcome.actions)


def test_after_the_ladders_trim_they_still_stand() -> None:
    before = transcript([user(f"{FILLER * 300}. Never push to main. {FILLER * 300}"), *talk(3)])
    stages = [AggressiveTrim(max_user_chars=2000, max_turns=4)]
    outcome = with_kept(before, context(before, 2000), 200, lambda transcript, told: run(transcript, stages, told))
    assert text_of(outcome.transcript.entries[0].message).endswith("- Never push to main.")


def test_messages_of_others_that_quote_a_rule_do_not_count() -> None:
    quoted: list[Message] = [
        user("Hi."),
        assistant("Hi."),
        user("Never push to main."),
        assistant("You said: Never push to main."),
        *talk(8, words=6),
    ]
    outcome = dropped(transcript(quoted), 300)
    assert parse(texts(outcome)[0]) is not None


def test_a_summary_made_in_advance_has_the_room_that_rules_will_leave() -> None:
    before = story("Never push to main.", "I prefer tea.")
    told = narrowed(before, context(before, 400), 200)
    assert told.rules == ["Never push to main.", "I prefer tea."]
    assert 0 < told.limit < 400
    assert told.target < context(before, 400).target
    assert narrowed(before, context(before, 400), 0).limit == 400
