"""What is asked of a summarizer, what of its answers is taken, and what is added so that nothing of weight is lost."""

from __future__ import annotations

import pytest

from ctxproxy.core import frames
from ctxproxy.core.messages import Directives, Message
from ctxproxy.core.prompts import WORDINGS
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import (
    MAX_CALLS,
    Draft,
    Need,
    complete,
    fitting,
    is_worth_a_call,
    joined,
    merging,
    not_in,
    reads_again,
    requests,
    verify,
)
from tests.core.histories import FILLER, assistant, call, count_text, long_turn, result, talk, user

GOOD = "The user asked several small questions about orders; each was answered, nothing is open."


def need(*messages: Message, language: str = "en", max_tokens: int = 300, previous: Summary | None = None) -> Need:
    return Need("tip", messages, language, max_tokens, previous)  # type: ignore[arg-type]


def earlier(text: str) -> Summary:
    return Summary("t0", text, "llm", "m", 3, count_text(text), 0, 0, 0)


# ---------------------------------------------------------------- asking
def test_what_fits_is_one_call_and_all_of_it_is_in() -> None:
    (only,) = requests(need(*talk(5)), 8000, count_text)
    assert all(f"q{n} " in only.user and f"a{n} " in only.user for n in range(5))
    assert only.max_tokens == 300


@pytest.mark.parametrize("window", [1500, 3000, 6000])
def test_every_call_fits_the_window_and_nothing_is_left_out(window: int) -> None:
    calls = requests(need(*talk(40, 8)), window, count_text)
    assert 1 < len(calls) < MAX_CALLS
    assert all(count_text(one.system) + count_text(one.user) + one.max_tokens <= window for one in calls)
    together = "".join(one.user for one in calls)
    assert all(f"q{n} " in together and f"a{n} " in together for n in range(40))


@pytest.mark.parametrize("messages", [talk(2000, 12), long_turn(300), [user("word " * 400_000)]], ids=["many", "calls", "one"])
def test_however_long_it_is_the_calls_stay_few(messages: list[Message]) -> None:
    calls = requests(need(*messages), 3000, count_text)
    assert 1 < len(calls) < MAX_CALLS
    assert all(count_text(one.system) + count_text(one.user) + one.max_tokens <= 3000 for one in calls)


def test_a_window_too_small_for_anything_is_not_asked() -> None:
    assert requests(need(*talk(5)), 400, count_text) == []
    assert requests(need(), 8000, count_text) == []


def test_an_earlier_summary_goes_with_the_first_call_only() -> None:
    calls = requests(need(*talk(40, 8), previous=earlier("EARLIER-1 was decided.")), 2000, count_text)
    assert ["EARLIER-1" in one.user for one in calls] == [True] + [False] * (len(calls) - 1)


def test_our_own_texts_and_what_the_client_keeps_out_are_not_read() -> None:
    secret = user("SECRET-1", Directives(never_summarize=True))
    frame = frames.said("user", frames.frame_text(frames.Background("FRAME-1"), "en"))
    wanted = need(user("Q-1"), frame, frames.acknowledgement("en"), secret, assistant("A-1"))
    (only,) = requests(wanted, 8000, count_text)
    assert "Q-1" in only.user
    assert "A-1" in only.user
    assert not any(text in only.user for text in ("SECRET-1", "FRAME-1", "background is noted"))
    assert "SECRET-1" not in complete("Told.", wanted, count_text)


def test_parts_are_merged_by_one_more_call_if_they_fit_else_joined() -> None:
    wanted = need(*talk(3), max_tokens=60)
    merged = merging(wanted, ["PART-1", "PART-2"], 4000, count_text)
    assert merged is not None
    assert merged.user.index("PART-1") < merged.user.index("PART-2")
    assert merging(wanted, ["PART " * 4000], 4000, count_text) is None
    assert joined(wanted, ["PART-1.", "PART-2."], count_text) == "PART-1.\nPART-2."
    assert count_text(joined(wanted, [f"{FILLER} PART-{n}." for n in range(20)], count_text)) <= 60


# ---------------------------------------------------------------- judging
LONG_ENGLISH = talk(30)
LONG_CHINESE = [
    part
    for n in range(12)
    for part in (user(f"第{n}个订单 A-10{n} 什么时候发货，能不能改地址？" * 4), assistant(f"订单 A-10{n} 已经出库，地址不能再改。" * 4))
]
SAID_LAST = "The login page shows a blank screen because the script bundle is missing on the server."


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (Draft(""), "empty"),
        (Draft("  \n\n"), "empty"),
        (Draft(frames.WORDINGS["en"].title), "empty"),
        (Draft("I'm sorry, but I can't help with that."), "a refusal"),
        (Draft("As an AI language model I cannot do this for you."), "a refusal"),
        (Draft("There is no conversation to sum up here, it seems."), "a refusal"),
        (Draft("Please provide the transcript you want me to read."), "a refusal"),
        (Draft("Error generating summary: rate limit reached, try again"), "a refusal"),
        (Draft("抱歉，我无法提供这段对话的摘要。"), "a refusal"),
        (Draft("OK"), "says nothing"),
        (Draft("short summary"), "says nothing"),
        (Draft(GOOD, "length"), "ended by length"),
        (Draft(GOOD, "content_filter"), "ended by content_filter"),
        (Draft(GOOD, "what it said"), "ended by an unknown reason"),
        (Draft(GOOD, "tool_calls", calls_tools=True), "calls a tool"),
        (Draft("the same four words " * 60), "repeats itself"),
        (Draft(SAID_LAST), "an echo"),
        (Draft(SAID_LAST.upper().replace(" ", "  ")), "an echo"),
        (Draft(SAID_LAST[:60]), "an echo"),
        (Draft("\n".join(WORDINGS["en"].system.splitlines()[-6:])), "an echo"),
        (Draft(" ".join(f"word{n}" for n in range(4000))), "no smaller than what it covers"),
        (Draft("用户问了几个关于订单的小问题，都已回答，没有待办事项。"), "in the wrong script"),
    ],
)
def test_what_is_no_summary_is_not_taken(draft: Draft, reason: str) -> None:
    verdict = verify(draft, need(*LONG_ENGLISH, assistant(SAID_LAST)), count_text)
    assert (verdict.ok, verdict.reason) == (False, reason)


@pytest.mark.parametrize(
    "draft",
    [
        Draft(GOOD),
        Draft(GOOD, None),
        Draft("Ten questions were asked."),
        Draft("The user was sorry for the delay. " + GOOD),
        Draft("Errors: E1234 was fixed by a restart. " + GOOD),
        Draft("Sorry states of services were looked into: " + " ".join(f"service {n} was restarted by hand;" for n in range(20))),
    ],
)
def test_a_summary_is_taken(draft: Draft) -> None:
    assert verify(draft, need(*LONG_ENGLISH), count_text) == (True, "")


def test_a_chinese_conversation_wants_a_chinese_summary() -> None:
    chinese = need(*LONG_CHINESE, language="zh")
    assert verify(Draft("用户询问订单 A-101 至 A-108 的发货和改地址。"), chinese, count_text).ok
    assert verify(Draft(GOOD), chinese, count_text).reason == "in the wrong script"
    assert verify(Draft("啊" * 400), chinese, count_text).reason == "repeats itself"


def test_an_english_conversation_about_chinese_may_be_told_in_chinese() -> None:
    assert verify(Draft("用户问了几个关于订单的小问题，都已回答。"), need(*LONG_CHINESE), count_text).ok


def test_a_word_is_enough_for_next_to_nothing() -> None:
    assert verify(Draft("Greeting exchanged"), need(user("Hello there my friend"), assistant("Hello to you, how are you?")), count_text).ok


def test_an_earlier_summary_counts_as_covered() -> None:
    wanted = need(user("go on"), previous=earlier(" ".join(f"word{n}" for n in range(200))))
    assert verify(Draft(GOOD), wanted, count_text).ok


# ---------------------------------------------------------------- completing
def test_rules_and_values_that_are_missing_are_appended_and_what_is_there_is_not() -> None:
    wanted = need(user("RULE-7: never push to main. Ticket BUG-4711."), call("c", path="src/a.py"), result("c", "ok"), user("Do not shout."))
    text = complete("The user has ticket BUG-4711. Do not shout.", wanted, count_text)
    assert "- RULE-7: never push to main." in text
    assert "src/a.py" in text
    assert text.count("BUG-4711") == 1
    assert text.count("Do not shout") == 1


def test_a_longer_value_does_not_stand_for_a_shorter_one() -> None:
    text = complete("It is about A-101.", need(user("Compare A-10 and A-101."), max_tokens=400), count_text)
    assert text.endswith("A-10")


@pytest.mark.parametrize(
    ("value", "text", "missing"),
    [
        ("Ada Lovelace", "asked ada\n  lovelace, twice", False),
        ("Ada Lovelace", "asked Ada Lovelace", False),
        ("Ada Lovelace", "Ada and Lovelace", True),
        ("f(x)", "calls f(x)", False),
        ("f(x)", "calls f (x)", True),
        ("A-10", "A-101", True),
        ("A-10", "see a-10.", False),
    ],
)
def test_a_value_stands_in_a_text_as_a_whole_whatever_case_and_blanks(value: str, text: str, missing: bool) -> None:
    assert list(not_in([value], text)) == ([value] if missing else [])


def test_nothing_is_appended_to_a_summary_that_has_it_all() -> None:
    assert complete("All said.", need(user("hello you there")), count_text) == "All said."


def test_what_is_appended_is_bounded_and_one_long_rule_does_not_keep_out_the_others() -> None:
    rules = [
        user(f"Never touch the table number {n} of the old database server." + (" And never" + " so" * 150 if n == 3 else "")) for n in range(60)
    ]
    text = complete("Told.", need(*rules, max_tokens=200), count_text)
    assert 0 < count_text(text) <= 100
    assert fitting(["a" * 400, "bb", "cc"], 8, count_text) == ["bb", "cc"]
    assert fitting(["aaaaaaaaaaaaaaa", "b" * 40, "cc"], 8, count_text) == ["aaaaaaaaaaaaaaa"]


@pytest.mark.parametrize(
    ("told", "now", "again"), [(1, 3, False), (1, 4, True), (3, 8, True), (4, 15, False), (17, 60, False), (17, 70, True), (70, 260, True)]
)
def test_the_originals_are_read_again_each_time_a_conversation_has_grown_fourfold(told: int, now: int, again: bool) -> None:
    assert reads_again(told, now) is again


@pytest.mark.parametrize(
    ("untold", "first", "worth"),
    [(250, True, True), (249, True, False), (749, False, False), (750, False, True)],
)
def test_a_model_is_asked_where_enough_is_not_told_yet(untold: int, first: bool, worth: bool) -> None:
    assert is_worth_a_call(untold, 1000, 1024, first=first) is worth
    assert is_worth_a_call(8 * 1024, 1_000_000, 1024, first=first)
