"""System 001, the hybrid manager: what its preset does, by row. Rows that other tests show are listed in docs/reference-systems.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ctxproxy.config.policies import resolved
from ctxproxy.core.budget import budget
from ctxproxy.core.frames import is_frame
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.validity import violations
from tests.core.chains import Chain
from tests.core.histories import FILLER, assistant, call, count, result, talk, transcript, user

HYBRID = resolved({}, {"preset": "hybrid"})
LIMIT = 4000


def padded(messages: Sequence[Message], total: int, at: int = 1) -> list[Message]:
    """The messages with so much more text in one of them that they have exactly `total` tokens by the tests' count."""
    missing = total - sum(map(count, messages))
    longer = assistant(text_of(messages[at]) + "x" * (4 * missing))
    padded = [*messages[:at], longer, *messages[at + 1 :]]
    assert sum(map(count, padded)) == total
    return padded


def planned(history: Sequence[Message], limit: int = LIMIT, policy: Policy = HYBRID) -> Plan:
    return plan(Chain(policy).situation(history, limit))


def talk_of(turns: int, total: int) -> list[Message]:
    """So many finished turns and a question, of about `total` tokens, all messages but the question alike."""
    words = (total // (2 * turns) - 6) * 4 // len(FILLER)
    return [*(m for n in range(turns) for m in (user(f"q{n} " + FILLER * words), assistant(f"a{n} " + FILLER * words))), user("last question?")]


def test_001_02_the_goal_is_in_every_view() -> None:
    chain = Chain(HYBRID)
    history = [user("Build a boat of 7 metres for Mrs. Lund."), assistant("Which wood?")]
    for n in range(60):
        history.append(user(f"part {n} " + FILLER * 4))
        step = chain.ask(history, LIMIT)
        assert step.sent[0] == history[0].raw
        history.append(assistant(f"done {n} " + FILLER * 4))
    assert any(step.plan.checkpoint for step in chain.steps)


@pytest.mark.parametrize("limit", [500, 1000, 2000])
def test_001_13_what_is_left_is_within_the_budget_and_groups_are_whole(limit: int) -> None:
    turns = [[user(f"look {n}"), call(f"c{n}", path=f"{n}.py"), result(f"c{n}", "line\n" * 60), assistant(f"seen {n}")] for n in range(20)]
    made = planned([*(m for turn in turns for m in turn), user("and now?")], limit)
    assert made.fits
    assert violations(made.messages) == []


def test_001_14_the_newest_messages_stay_as_they_are() -> None:
    history = talk_of(30, 9000)
    assert planned(history).messages[-5:] == tuple(history[-5:])
    in_the_window = Policy(pipeline=({"stage": "priority_window"},))
    assert planned(history, policy=in_the_window).messages[-5:] == tuple(history[-5:])


def test_001_20_a_summary_comes_after_every_fifth_turn() -> None:
    """With the request that follows the fifth turn: nothing is done before something is to be sent (001-64)."""
    chain = Chain(Policy(pipeline=({"stage": "rolling_summary", "keep_turns": 0, "every_turns": 5},)), late=10_000)
    history: list[Message] = []
    fired = []
    for n in range(1, 17):
        history.append(user(f"question {n} " + FILLER * 9))
        fired += [n] if ("rolling_summary", 1) in chain.ask(history, 100_000).plan.actions else []
        history.append(assistant(f"answer {n} " + FILLER * 9))
    assert fired == [6, 11, 16]


def test_001_21_a_summary_outlives_the_trimming_after_it() -> None:
    history = talk_of(30, 9000)
    chain = Chain(HYBRID)
    first = chain.ask(history, LIMIT)
    assert any(map(is_frame, first.plan.messages))
    small = chain.ask([*history, assistant("a " * 200), user("go on")], 900)
    assert small.plan.fits
    assert any(map(is_frame, small.plan.messages))


def test_001_41_three_quarters_of_4000_tokens_are_the_trigger() -> None:
    room = budget(HYBRID, 16_385, None, 0)
    assert (room.limit, room.trigger) == (4000, 3000)
    history = talk_of(10, 2500)
    assert not planned(padded(history, 2999)).changed
    assert planned(padded(history, 3001, at=9)).changed


def test_001_46_a_summarizer_that_fails_leaves_no_placeholder() -> None:
    history = [user("Order W-4711 goes to Berlin."), assistant("Noted."), *talk_of(20, 5000)]
    history.insert(15, user("The deposit of 350 euros is paid by card ending 9911."))
    chain = Chain(HYBRID, late=10_000)
    for end in (len(history) - 2, len(history)):
        step = chain.ask(history[:end], LIMIT)
        (frame,) = [text_of(m) for m in step.plan.messages if is_frame(m)]
        assert "350 euros" in frame
    short = Chain(HYBRID).situation(padded(talk_of(10, 2500), 3500), LIMIT)
    assert plan(short).changed
    assert not plan(replace(short, summarizer="off")).changed, "without a summarizer nothing is put in place of anything"


def test_001_47_of_twelve_messages_five_and_five_stay_around_one_summary() -> None:
    history = [assistant("Welcome! " + FILLER * 7), *talk_of(6, 3600)][:12]
    history = [*history[:-1], user("and now? " + FILLER * 7)]
    made = planned(history)
    assert made.messages[:5] == tuple(history[:5])
    assert made.messages[-5:] == tuple(history[-5:])
    assert [is_frame(m) for m in made.messages[5:-5]].count(True) == 1


def test_001_48_the_summary_stands_in_its_place_and_says_what_it_covers() -> None:
    history = talk_of(12, 3600)
    made = planned(history)
    assert [at for at, m in enumerate(made.messages) if is_frame(m)] == [5]
    assert "Summary of the 15 messages that stood here:" in text_of(made.messages[5])
    chinese = [part for n in range(20) for part in (user(f"第{n}个订单什么时候发货？" * 9), assistant("已经出库，地址不能再改。" * 9))]
    assert "历史摘要" in text_of(planned([*chinese, user("那第一个订单呢？")]).messages[5])
    assert alternates(made.messages)


def test_001_49_what_is_still_too_long_is_filled_to_nine_tenths() -> None:
    long_ends = [m for n in range(5) for m in (user(f"q{n} " + FILLER * 60), assistant(f"a{n} " + FILLER * 60))]
    history = [*long_ends, *talk(10), assistant("so"), *long_ends, user("now?")]
    made = planned(history)
    assert {name for name, _ in made.actions} == {"summarize_middle", "priority_window"}
    assert made.transcript.tokens <= 0.9 * LIMIT
    assert made.transcript.tokens > 0.6 * LIMIT
    only_summarized = planned(talk_of(12, 3600))
    assert [name for name, _ in only_summarized.actions] == ["summarize_middle"]


def test_001_50_the_order_of_the_conversation_stays() -> None:
    history = talk_of(40, 12_000)
    made = plan(Chain(Policy(pipeline=({"stage": "priority_window"},))).situation(history, LIMIT))
    kept = [entry.tip for entry in made.transcript.entries if entry.tip]
    tips = [entry.tip for entry in transcript(history).entries]
    assert kept == [tip for tip in tips if tip in kept]
    assert len(kept) < len(tips)


def test_001_52_what_is_given_out_cannot_change_what_is_kept() -> None:
    situation = Chain(HYBRID).situation(talk_of(20, 6000), LIMIT)
    made = plan(situation)
    with pytest.raises((AttributeError, TypeError)):
        made.messages[0].raw = b"{}"  # type: ignore[misc]
    list(made.messages).clear()
    assert plan(situation) == made


TRAVEL = [
    "你好，我想规划一次去日本的旅行，大概7天。",
    "我比较喜欢文化体验和美食，不太喜欢购物。",
    "我的预算中等，不要太贵的酒店。",
    "我讨厌拥挤的地方，热门景点能避开就避开。",
    "对了，我特别喜欢抹茶，能安排一次抹茶体验吗？",
]
ADVICE = "好的，这里有一些建议：可以考虑京都的寺庙、奈良的公园、金泽的庭院，以及当地的市场和小店，交通以新干线为主，住宿可以选择民宿。"


@pytest.mark.parametrize("limit", [4000, 2000, 1200])
@pytest.mark.parametrize("words", [3, 10, 30])
def test_001_53_the_five_wishes_of_the_traveller_are_in_the_last_view(limit: int, words: int) -> None:
    chain = Chain(HYBRID, late=10_000)
    history: list[Message] = []
    for text in [*TRAVEL, *("继续，下一天呢？", "好的，再下一天呢？") * 6, "请给出最终的行程。"]:
        history.append(user(text))
        step = chain.ask(history, limit)
        history.append(assistant(ADVICE * words))
    assert step.plan.fits
    assert words == 3 or step.plan.changed
    view = "\n".join(map(text_of, step.plan.messages))
    assert [wish for wish in ("文化", "美食", "预算中等", "讨厌拥挤", "抹茶") if wish not in view] == []


def test_001_65_the_default_triggers_lie_between_70_and_80_percent() -> None:
    assert 0.7 <= HYBRID.compact_at <= 0.8
    assert 0.7 <= Policy().compact_at <= 0.8


def test_001_75_what_the_client_lets_go_goes_first() -> None:
    history = talk_of(30, 9000)
    loud = user("Never forget this rule. " + FILLER * 20, Directives(drop_first=True))
    history[10] = loud
    made = plan(Chain(Policy(pipeline=({"stage": "priority_window"},))).situation(history, 8000))
    assert loud not in made.messages
    assert len(made.messages) > 40
