"""What each group of a prompt is worth."""

from __future__ import annotations

import pytest

from ctxproxy.core import frames
from ctxproxy.core.messages import Directives, Message, make
from ctxproxy.core.priorities import KEYWORD_BONUS, RECENCY_BONUS, SCORES, Kind, Priority, priorities
from ctxproxy.core.transcript import Entry, Transcript
from tests.core.histories import FILLER, assistant, call, count, result, transcript, user

GOAL_TOKENS = 100


def scored(*messages: Message, goal_tokens: int = GOAL_TOKENS) -> list[Priority]:
    """The priorities of these messages between a first and a last question."""
    found = priorities(transcript([user("first of all"), *messages, user("and now?")]), goal_tokens)
    return found[1:-1]


@pytest.mark.parametrize(
    ("messages", "kind"),
    [
        ([make({"role": "system", "content": "a note in between"})], "system"),
        ([make({"role": "developer", "content": "a note in between"})], "system"),
        ([call("c"), result("c", "Traceback: it failed")], "key_result"),
        ([call("c"), result("c", "错误：找不到文件")], "key_result"),
        ([assistant("We take sqlite because the data is small.")], "reasoning"),
        ([call("c", says="I decided to look first."), result("c", "plain lines")], "reasoning"),
        ([assistant("因此我们先改接口。")], "reasoning"),
        ([user("The second file is next.")], "user"),
        ([call("c"), result("c", "plain lines, because of nothing")], "result"),
        ([assistant("Here is the second file.")], "assistant"),
        ([assistant(None)], "assistant"),
        ([user("Thanks!")], "small_talk"),
        ([assistant("好的。")], "small_talk"),
        ([user("Never push.", Directives(drop_first=True))], "dropped"),
    ],
)
def test_a_group_is_of_a_kind(messages: list[Message], kind: Kind) -> None:
    (found,) = scored(*messages)
    assert found.kind == kind
    assert SCORES[kind] < found.score < SCORES[kind] + 1


def test_a_result_without_its_call_is_a_result_too() -> None:
    lost = [make({"role": "function", "name": "f", "content": "fatal: not a repository"}), user("x"), assistant("y"), user("z")]
    assert priorities(transcript(lost), GOAL_TOKENS)[0].kind == "key_result"


def test_the_latest_question_and_the_goal_are_known_by_their_place() -> None:
    first, last = priorities(transcript([user("build a boat"), user("and now?")]), GOAL_TOKENS)
    assert (first.kind, last.kind) == ("goal", "latest")
    document, _ = priorities(transcript([user(FILLER * 100), user("and now?")]), GOAL_TOKENS)
    assert document.kind == "user"


def test_a_summary_is_worth_more_than_any_wish_and_its_acknowledgement_goes_with_it() -> None:
    frame = [frames.said("user", frames.frame_text(frames.Background("They spoke of boats."), "en")), frames.acknowledgement("en")]
    inserted = tuple(Entry(message, count(message), origin="inserted", stage="summarize") for message in frame)
    rest = transcript([user("RULE-1: never push."), assistant(frames.WORDINGS["en"].acknowledgement), user("and now?")]).entries
    summary, acknowledgement, rule, same_words, _ = priorities(Transcript((*inserted, *rest)), GOAL_TOKENS)
    assert summary.kind == "summary"
    assert acknowledgement == summary
    assert summary.key < rule.key
    assert same_words.kind == "assistant", "the client's own message, whatever it says"
    bare, _ = priorities(Transcript((inserted[1]._replace(), rest[-1])), GOAL_TOKENS)
    assert bare.kind == "assistant", "nothing stands before it"


@pytest.mark.parametrize(
    "wish",
    [
        *("I prefer trains.", "I hate crowds.", "My budget is 900 euros.", "You must use tabs.", "Never call the old API."),
        *("我喜欢抹茶。", "我讨厌拥挤。", "预算中等。", "必须用中文。", "不要删除文件。", "禁止外部请求。"),
    ],
)
def test_an_old_wish_or_rule_outranks_what_is_said_later(wish: str) -> None:
    old, *newer = scored(user(wish), user("hi"), user("the next file"), assistant("We do it because of this."), call("c"), result("c", "lines"))
    assert all(old.key < other.key for other in newer), [old, newer]


def test_a_rule_is_worth_more_than_a_wish_and_a_question_is_neither() -> None:
    wish, rule, question = scored(user("I like trains."), user("I like trains. Never take a plane."), user("Do you have trains?"))
    assert rule.score > wish.score > question.score


def test_a_keyword_raises_a_message_within_its_class_only() -> None:
    plain, keyed, result_ = scored(assistant("plain words"), assistant("the final words"), call("c"), result("c", "lines"))
    assert plain.score < keyed.score < result_.score
    chinese, without = priorities(transcript([user("x"), assistant("这是最终的文件"), user("y")]), 100)[1], scored(assistant("这是那个文件"))[0]
    assert chinese.score - without.score == pytest.approx(KEYWORD_BONUS)


def test_keywords_and_scores_can_be_ones_own() -> None:
    t = transcript([user("x"), assistant("about turbines"), user("y")])
    plain, keyed = priorities(t, 100)[1], priorities(t, 100, ("turbine",))[1]
    assert keyed.score - plain.score == pytest.approx(KEYWORD_BONUS)
    assert priorities(t, 100, scores={"assistant": 1.5})[1].score == pytest.approx(1.5 + RECENCY_BONUS / 3)


def test_bonuses_can_be_ones_own() -> None:
    t = transcript([user("x"), user("Never take the final train."), user("I like tea."), user("y")])
    _, rule, wish, _ = priorities(t, 100, bonuses={"keyword": 0.0, "recency": 1.0, "rule": 0.5, "preference": 0.25})
    assert (rule.score, wish.score) == (pytest.approx(6 + 1 / 4 + 0.5), pytest.approx(6 + 2 / 4 + 0.25))
    assert priorities(t, 100, bonuses={}) == priorities(t, 100)


def test_of_two_alike_the_newer_counts_more() -> None:
    older, newer = scored(assistant("the same words"), assistant("the same words"))
    assert newer.key < older.key
    assert newer.score - older.score < RECENCY_BONUS


def test_where_scores_are_alike_the_kind_decides() -> None:
    order: list[Kind] = ["system", "latest", "summary", "user", "key_result", "result", "reasoning", "assistant", "small_talk"]
    assert sorted(sorted(order), key=lambda kind: Priority(kind, 5.0).key) == order


def test_of_a_long_text_beginning_and_end_are_read() -> None:
    ends, middle = scored(assistant("x " * 4000 + " the error"), assistant("x " * 4000 + " the error " + "x " * 4000))
    assert ends.score - middle.score == pytest.approx(KEYWORD_BONUS - RECENCY_BONUS / 4)
