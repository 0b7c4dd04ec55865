"""System 003, layered context management: what its preset does with a prompt, by row. Memory, retrieval and stores are rows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ctxproxy.config.policies import resolved
from ctxproxy.core.complexity import complexity, window_turns
from ctxproxy.core.frames import is_frame
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.plan import background_tip, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.validity import violations
from tests.core.chains import Chain
from tests.core.histories import FILLER, assistant, call, result, talk, transcript, user

LAYERED = resolved({}, {"preset": "layered"})
LIMIT = 100_000


def spoken(turn: int) -> list[Message]:
    """A finished turn of about 270 tokens."""
    return [user(f"q{turn} about order W-{turn}711: " + FILLER * 12), assistant(f"a{turn}: " + FILLER * 12)]


def turns(count: int) -> list[Message]:
    """So many finished turns and a question."""
    return [*(message for turn in range(count) for message in spoken(turn)), user("and now?")]


def planned(history: Sequence[Message], policy: Policy = LAYERED, limit: int = LIMIT) -> Plan:
    return plan(Chain(policy).situation(history, limit))


@pytest.mark.parametrize("count", [10, 11, 17, 40])
def test_003_04_the_last_five_turns_stay_word_for_word(count: int) -> None:
    history = turns(count)
    made = planned(history)
    assert made.changed
    assert list(made.messages[-11:]) == history[-11:]


def test_003_04_over_a_whole_conversation_too() -> None:
    chain, history = Chain(LAYERED, late=0), []
    for turn in range(40):
        history.append(spoken(turn)[0])
        made = chain.ask(history, LIMIT).plan
        assert list(made.messages[-11:]) == history[-11:]
        assert len(made.messages) < 2 + 2 * 10
        assert violations(made.messages) == []
        history.append(spoken(turn)[1])


def test_003_08_a_summary_is_written_at_turns_five_and_ten_and_so_on() -> None:
    chain, history, at = Chain(LAYERED), [], []
    for turn in range(31):
        history.append(spoken(turn)[0])
        step = chain.ask(history, LIMIT)
        tip = background_tip(step.situation, step.plan)
        if tip:
            at.append((turn, step.situation.reconciled.tips.index(tip) + 1))
        assert step.plan.wants == ""
        history.append(spoken(turn)[1])
    assert sorted({covered for _, covered in at}) == [10, 20, 30, 40, 50, 60]
    assert sorted({min(turn for turn, covered in at if covered == one) for _, one in at}) == [5, 10, 15, 20, 25, 30]


def test_003_08_it_stands_in_the_prompt_when_its_turns_have_left_the_last_five() -> None:
    chain, history, acted = Chain(LAYERED), [], []
    for turn in range(31):
        history.append(spoken(turn)[0])
        step = chain.ask(history, LIMIT)
        if step.plan.actions:
            acted.append(turn)
            assert "They spoke about the task." in text_of(step.plan.messages[0])
        history.append(spoken(turn)[1])
    assert acted == [10, 15, 20, 25, 30]


def test_003_09_without_a_model_the_best_sentences_stand_for_the_turns() -> None:
    made = plan(replace(Chain(LAYERED).situation(turns(12), LIMIT), summarizer="extractive"))
    assert is_frame(made.messages[0])
    assert "W-0711" in text_of(made.messages[0])
    assert made.wants == ""


def test_003_10_a_summary_names_the_messages_that_it_stands_for() -> None:
    history = turns(12)
    frame = planned(history).transcript.entries[0]
    assert frame.covers == tuple(entry.tip for entry in transcript(history).entries[:14])


def test_003_11_the_preset_that_loses_nothing_makes_no_summary() -> None:
    assert {REGISTRY[str(spec["stage"])].loss for spec in PRESETS["lossless"].stages} == {"reversible"}
    history = [*(m for n in range(30) for m in (user(f"q{n}"), call(f"c{n}"), result(f"c{n}", f"{n} " + FILLER * 40), assistant(f"a{n}"))), user("?")]
    made = planned(history, resolved({}, {"preset": "lossless"}), transcript(history).tokens)
    assert made.changed
    assert not any(map(is_frame, made.messages))
    assert [entry.tip for entry in made.transcript.entries] == [entry.tip for entry in transcript(history).entries]


@pytest.mark.parametrize(("score", "kept"), [(0.49, 3), (0.5, 5), (0.8, 5), (0.81, 7)])
def test_003_41_the_bounds_of_the_dynamic_window(score: float, kept: int) -> None:
    assert window_turns(score) == kept


def test_003_41_a_complex_conversation_keeps_more_turns() -> None:
    dynamic = Policy(pipeline=({"stage": "rolling_summary", "every_turns": 5, "dynamic_window": True},))
    plain = talk(20)
    assert list(planned(plain, dynamic).messages[-7:]) == plain[-7:]
    assert plain[-8] not in planned(plain, dynamic).messages
    names = ("boats", "breads", "clouds", "drums", "engines", "flutes", "grapes", "hills", "islands", "jewels", "kites", "lamps", "moons", "nests")
    asked = [f"{name} W-{n}711 X-{n}712 Y-{n}713 Z-{n}714 " + f"{name} " * (80 if n % 3 == 0 else 1) for n, name in enumerate(names)]
    assert complexity(asked[-7:]) > 0.8
    complicated = [message for text in asked for message in (user(text), assistant("fine " + FILLER * 4 + text[:9]))][:-1]
    made = planned(complicated, dynamic)
    assert list(made.messages[-15:]) == complicated[-15:]
    assert complicated[-17] not in made.messages


def test_003_42_the_numbers_of_the_file_are_the_presets() -> None:
    (options,) = (spec for spec in PRESETS["layered"].stages if spec["stage"] == "rolling_summary")
    assert (options["keep_turns"], options["every_turns"], options["min_tokens"]) == (5, 5, 1000)


def test_003_43_summary_and_key_information_stand_together() -> None:
    history = [user("Never ship to Turku. The order is W-4711, budget 900 EUR."), assistant("Noted: W-4711."), *turns(14)]
    text = text_of(planned(history).messages[0])
    assert "Never ship to Turku." in text
    assert "W-4711" in text
    assert "900 EUR" in text


def test_003_44_under_a_thousand_tokens_nothing_is_done() -> None:
    history = [message for turn in range(12) for message in (user(f"q{turn} " + "x" * 128), assistant(f"a{turn} " + "x" * 128))]
    question = user("?")
    missing = 999 - transcript([*history, question]).tokens
    exact = [*history, user("?" + "y" * (4 * missing))]
    assert transcript(exact).tokens == 999
    assert not planned(exact).changed
    assert planned([*exact[:-1], user(text_of(exact[-1]) + "yyyy")]).changed
