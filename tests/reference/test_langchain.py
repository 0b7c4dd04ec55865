"""System 004, LangChain's trimming and deletion and what its source adds, by row. Rows that other tests show are in docs/reference-systems.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from ctxproxy.config.policies import resolved
from ctxproxy.core.checkpoints import variant_of
from ctxproxy.core.extractive import CountText
from ctxproxy.core.frames import TITLES, is_frame
from ctxproxy.core.messages import Message, make, text_of, tool_calls
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy, SummarizerPolicy
from ctxproxy.core.prompts import WORDINGS
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import Need, requests
from ctxproxy.core.validity import violations
from ctxproxy.proxy.summary_desk import need_of
from tests.core.chains import Chain, Step
from tests.core.histories import FILLER, assistant, call, count_text, long_turn, result, talk, transcript, user

TRIM = resolved({}, {"preset": "trim"})
DELETE = resolved({}, {"preset": "delete"})
LIMIT = 100_000
SYSTEM = make({"role": "system", "content": "Be brief."})


def pipeline(stage: str, **options: Any) -> Policy:
    return Policy(pipeline=({"stage": stage, **options},))


STRICT = pipeline("cap_messages", strict=True)


def chat(messages: int) -> list[Message]:
    """H1, A1, H2, … so many."""
    return [user(f"H{n // 2 + 1}") if n % 2 == 0 else assistant(f"A{n // 2 + 1}") for n in range(messages)]


def planned(policy: Policy, history: Sequence[Message], limit: int = LIMIT) -> Plan:
    return plan(Chain(policy).situation(history, limit))


def sent(policy: Policy, history: Sequence[Message], limit: int = LIMIT) -> list[str]:
    return [text_of(message) for message in planned(policy, history, limit).messages]


def invoke(chain: Chain, history: list[Message], asked: str, answered: str) -> list[str]:
    """One invoke: the texts that the model is sent; the answer is added to the history."""
    history.append(user(asked))
    step = chain.ask(history, LIMIT)
    history.append(assistant(answered))
    return [text_of(message) for message in step.plan.messages]


def test_004_10_trimming_is_of_the_view_and_the_log_stays_whole() -> None:
    chain, history = Chain(TRIM, [SYSTEM]), chat(9)
    first = chain.ask(history, LIMIT)
    assert len(first.plan.messages) == 1 + 5
    assert first.asked == [SYSTEM, *history]
    assert dict(first.plan.actions) == {"keep_first_last": 1}
    again = chain.ask([*history, assistant("A5"), user("H6")], LIMIT)
    assert list(again.situation.reconciled.history[:9]) == history


@pytest.mark.parametrize(("options", "left"), [({"last": 2}, ["H1", "A4", "H5"]), ({"max_tokens": 20}, ["H1", "A3", "H4", "A4", "H5"])])
def test_004_11_system_and_first_message_stay_with_the_last_by_number_or_by_tokens(options: dict[str, Any], left: list[str]) -> None:
    situation = Chain(pipeline("keep_first_last", **options), [SYSTEM]).situation(chat(9), LIMIT)
    assert [text_of(message) for message in plan(situation).messages] == ["Be brief.", *left]


@pytest.mark.parametrize(
    ("messages", "left"),
    [
        (1, ["H1"]),
        (2, ["H1", "A1"]),
        (3, ["H1", "A1", "H2"]),
        (5, ["H1", "A1", "H2", "A2", "H3"]),
        (6, ["H1", "A2", "H3", "A3"]),
        (7, ["H1", "A2", "H3", "A3", "H4"]),
        (8, ["H1", "A3", "H4", "A4"]),
        (21, ["H1", "A9", "H10", "A10", "H11"]),
    ],
)
def test_004_13_the_first_and_the_last_three_or_four(messages: int, left: list[str]) -> None:
    assert sent(TRIM, chat(messages)) == left


def test_004_13_over_the_budget_what_the_rule_keeps_is_not_too_much() -> None:
    """Promise 3: the rule is about numbers; where its four messages do not fit, the last resorts make them."""
    made = planned(TRIM, talk(9, words=60), 1000)
    assert made.fits
    assert [name for name, _ in made.actions] == ["keep_first_last", "drop_oldest"]
    assert made.messages[-1].raw == user("last question?").raw


def test_004_14_four_invokes_grow_and_are_then_trimmed_at_each_call() -> None:
    chain, history = Chain(TRIM), []
    calls = [
        invoke(chain, history, "hi, my name is bob", "Hello Bob!"),
        invoke(chain, history, "write a short poem about cats", "Cats are soft."),
        invoke(chain, history, "now do the same but for dogs", "Dogs are loud."),
        invoke(chain, history, "what's my name?", "Bob."),
    ]
    assert calls == [
        ["hi, my name is bob"],
        ["hi, my name is bob", "Hello Bob!", "write a short poem about cats"],
        ["hi, my name is bob", "Hello Bob!", "write a short poem about cats", "Cats are soft.", "now do the same but for dogs"],
        ["hi, my name is bob", "Cats are soft.", "now do the same but for dogs", "Dogs are loud.", "what's my name?"],
    ]
    assert invoke(chain, history, "and mine?", "Ann")[:2] == ["hi, my name is bob", "Dogs are loud."]


def test_004_20_what_was_deleted_is_never_sent_again() -> None:
    chain, history = Chain(DELETE), []
    views = [invoke(chain, history, f"H{n}", f"A{n}") for n in range(1, 9)]
    gone: set[str] = set()
    for before, view in pairwise(views):
        gone |= {text for text in before if text not in view}
        assert gone.isdisjoint(view)
    assert len(gone) == 10
    assert views[3] == ["H2", "A2", "H3", "A3", "H4"]
    assert len(chain.steps[-1].situation.reconciled.history) == 15


@pytest.mark.parametrize(("policy", "left"), [(STRICT, ["A1", "H2", "A2", "H3", "A3"]), (DELETE, ["H2", "A2", "H3", "A3"])], ids=["strict", "preset"])
def test_004_22_of_six_messages_the_oldest_goes_and_a_turn_is_rounded_up_unless_strict(policy: Policy, left: list[str]) -> None:
    assert sent(policy, chat(6)) == left
    assert sent(policy, [*chat(6), user("H4")]) == [*left, "H4"]


@pytest.mark.parametrize("policy", [STRICT, DELETE], ids=["strict", "preset"])
@pytest.mark.parametrize("messages", [2, 4, 5])
def test_004_23_two_and_four_messages_stay(policy: Policy, messages: int) -> None:
    assert not planned(policy, chat(messages)).changed


@pytest.mark.parametrize("policy", [STRICT, DELETE], ids=["strict", "preset"])
def test_004_24_the_users_name_is_gone_and_the_assistants_remains(policy: Policy) -> None:
    chain, history = Chain(policy), []
    for asked, answered in [("我是老王", "你好，老王！"), ("你是小王", "好的，我是小王。"), ("今天天气如何？", "晴天。")]:
        assert asked in invoke(chain, history, asked, answered)
    view = invoke(chain, history, "我是谁？你是谁？", "我不知道你是谁，我是小王。")
    assert "我是老王" not in view
    assert "你是小王" in view
    assert view[-1] == "我是谁？你是谁？"


TOOLS = [user("find it"), call("a"), result("a", "ra"), call("b"), result("b", "rb"), call("c"), result("c", "rc")]


@pytest.mark.parametrize(
    "options",
    [{}, {"last": 1}, {"last": 3}, {"first": 0, "last": 1}, {"first": 0, "last": 3}, {"max_tokens": 1}, {"first": 0, "max_tokens": 30}],
    ids=str,
)
def test_004_S1_whatever_is_kept_of_one_turn_of_tools_it_is_a_legal_list_that_begins_with_the_question(options: dict[str, Any]) -> None:
    """R6: nothing empty, no result first."""
    made = planned(pipeline("keep_first_last", **options), TOOLS)
    assert made.messages[0] == TOOLS[0]
    assert made.messages[-1] == TOOLS[-1]
    assert len(made.messages) < len(TOOLS)
    assert violations(made.messages) == []


@pytest.mark.parametrize(
    ("when", "messages", "acts"),
    [
        ([], 40, False),
        ([{"messages": 41}], 40, False),
        ([{"messages": 40}], 40, True),
        ([{"messages": 40, "tokens": 10**6}], 40, False),
        ([{"messages": 40, "tokens": 10**6}, {"fraction": 0.01}], 40, True),
        ([{"fraction": 0.5}], 40, False),
    ],
)
def test_004_S3_all_of_a_clause_and_one_of_the_clauses(when: list[dict[str, Any]], messages: int, acts: bool) -> None:
    history = talk(messages // 2)[:messages]
    assert planned(pipeline("rolling_summary", when=when), history).changed is acts


@pytest.mark.parametrize(
    ("keep", "left"), [({}, 20), ({"keep_messages": 4}, 4), ({"keep_tokens": 66 * 6}, 6), ({"keep_fraction": 66 * 6 / LIMIT}, 6)], ids=str
)
def test_004_S4_the_last_twenty_messages_are_kept_or_others_by_number_tokens_or_share(keep: dict[str, Any], left: int) -> None:
    history = talk(30)[:60]
    made = planned(pipeline("rolling_summary", when=[{"messages": 60}], **keep), history)
    assert list(made.messages[-left:]) == history[-left:]
    assert len(made.messages) <= left + 2


def test_004_S5_the_first_fact_is_read_however_long_the_transcript_is() -> None:
    told = [user("The key is XK-4711."), *(m for n in range(60) for m in (assistant(f"{n} " + FILLER * 30), user(f"{n}?")))]
    calls = requests(Need("", tuple(told), "en", 1024), 4000, count_text)
    assert len(calls) > 1
    assert "XK-4711" in calls[0].user
    assert all("".join(one.user for one in calls).count(f"] user: {n}?") == 1 for n in range(60))


def test_004_S6_the_sections_of_a_summary() -> None:
    for section in (
        "Goal",
        "Rules and limits",
        "Decisions",
        "why, and what was rejected",
        "Artifacts",
        "Open points",
        '"none" where there is nothing',
    ):
        assert section in WORDINGS["en"].system


def test_004_S7_the_summary_is_a_user_message_with_a_fixed_opening_and_what_it_covers_is_told_beside_it() -> None:
    history = talk(30)
    made = planned(pipeline("rolling_summary", when=[{"messages": 60}]), history)
    frame = made.transcript.entries[0]
    assert frame.message.role == "user"
    assert text_of(frame.message).startswith(TITLES)
    assert frame.message.fields.keys() == {"role", "content"}
    assert (frame.stage, frame.covers) == ("rolling_summary", tuple(entry.tip for entry in transcript(history).entries[: len(frame.covers)]))


@pytest.mark.parametrize("keep", range(1, 9))
def test_004_S8_a_cut_inside_a_group_moves_back_to_its_call(keep: int) -> None:
    parallel = assistant(None, tool_calls=[one for m in (call("p"), call("q"), call("r")) for one in m.fields["tool_calls"]])
    history = [*talk(9), assistant("so"), user("go"), parallel, *(result(one, one + FILLER) for one in "pqr"), assistant("done"), user("next")]
    made = planned(pipeline("rolling_summary", when=[{"messages": 9}], keep_messages=keep), history)
    assert made.changed
    assert violations(made.messages) == []
    assert history[-keep:] == list(made.messages[-keep:])


def test_004_S10_context_editing_clears_the_oldest_results_and_keeps_three() -> None:
    assert not planned(pipeline("clear_tool_uses"), long_turn(45, chars=8000), 100_000).changed
    grown = long_turn(60, chars=9000)
    made = planned(pipeline("clear_tool_uses"), grown, 130_000)
    cleared = [at for at, message in enumerate(made.messages) if text_of(message).startswith("[cleared]")]
    assert cleared[0] == 2
    assert cleared == list(range(2, cleared[-1] + 1, 2))
    assert list(made.messages[-6:]) == grown[-6:]
    assert [tool_calls(message) for message in made.messages] == [tool_calls(message) for message in grown]
    assert violations(made.messages) == []


def writer(tip: str, text: str, count: CountText = count_text) -> Summary:
    return Summary(tip, text, "llm", "m", 9, count(text), 0, 0, 0)


def test_004_S12_a_running_summary_is_carried_on_and_no_message_is_summarized_twice() -> None:
    policy = pipeline("rolling_summary", when=[{"messages": 30}], keep_messages=10)
    chain, history, told = Chain(policy, summary_text="THE SUMMARY."), [], []
    for turn in range(60):
        history.append(user(f"q{turn}: " + FILLER * 4))
        step: Step = chain.ask(history, LIMIT)
        if step.plan.wants:
            need = need_of(step.situation, step.plan.wants, SummarizerPolicy(), 128_000)
            assert (need.previous is None) is (not told)
            assert need.max_tokens == 256
            told += need.messages
        history.append(assistant(f"a{turn}: " + FILLER * 4))
    assert len(told) > 60
    assert told == history[: len(told)]


def test_004_S13_there_is_one_summary_after_any_number_of_generations() -> None:
    chain, history = Chain(pipeline("rolling_summary", when=[{"messages": 30}], keep_messages=10), [SYSTEM], late=0), []
    for turn in range(60):
        history.append(user(f"q{turn}: " + FILLER * 4))
        made = chain.ask(history, LIMIT).plan
        assert sum(map(is_frame, made.messages)) == (turn >= 15) or turn == 14
        assert made.messages[0] == SYSTEM
        history.append(assistant(f"a{turn}: " + FILLER * 4))


@pytest.mark.parametrize(
    ("options", "turns", "kept"),
    [({"when": [{"fraction": 0.85}], "keep_fraction": 0.10}, 66, 15), ({"when": [{"tokens": 170_000}], "keep_messages": 6}, 1400, 6)],
    ids=["by share of the window", "for a window that is not known"],
)
def test_004_S14_the_numbers_of_deepagents_can_be_set(options: dict[str, Any], turns: int, kept: int) -> None:
    limit = 10_000 if turns == 66 else 300_000
    policy = pipeline("rolling_summary", **options)
    whole = transcript(talk(turns)).tokens
    bound = 8500 if turns == 66 else 170_000
    shorter = talk(int(turns * bound / whole) - 1)
    assert not planned(replace_trigger(policy), shorter, limit).changed
    made = planned(replace_trigger(policy), talk(turns), limit)
    assert list(made.messages[-kept:]) == talk(turns)[-kept:]
    assert len(made.messages) <= kept + 2


def replace_trigger(policy: Policy) -> Policy:
    """The same with no trigger of tokens but the stage's own."""
    return Policy(pipeline=policy.pipeline, compact_at=1.0, target=1.0, summarize_at=1.0)


def test_004_S16_long_arguments_of_old_calls_are_cut_to_twenty_characters_and_stay_json() -> None:
    code = "import os, sys, json\n" + "value = compute(value)\n" * 200
    history = [user("write"), call("w", "write_file", path="a.py", content=code), result("w", "ok"), assistant("done"), *talk(5)]
    made = planned(pipeline("truncate_arguments"), history, transcript(history).tokens)
    arguments = json.loads(tool_calls(made.messages[1])[0].arguments)
    assert arguments["path"] == "a.py"
    assert arguments["content"].startswith("import os, sys, json [COMPACTED: ")
    assert len(tool_calls(made.messages[1])[0].arguments) < 2000


def test_001_83_the_four_memories_of_langchain_are_four_pipelines() -> None:
    """ConversationBufferWindowMemory, ConversationSummaryMemory, ConversationSummaryBufferMemory; the fourth retrieves."""
    history = talk(12)
    window = sent(pipeline("keep_first_last", first=0, last=6), history)
    assert window == [text_of(message) for message in history[-7:]]
    told = planned(pipeline("rolling_summary", keep_messages=0, when=[{"messages": 3}]), history)
    assert is_frame(told.messages[0])
    assert told.messages[-1] == history[-1]
    assert len(told.messages) <= 3
    buffered = planned(pipeline("rolling_summary", keep_tokens=66 * 4, when=[{"tokens": 66 * 8}]), history)
    assert is_frame(buffered.messages[0])
    assert list(buffered.messages[-4:]) == history[-4:]
    assert len({variant_of("m", pipeline(name)) for name in ("keep_first_last", "rolling_summary")}) == 2
