"""Priorities that are learned: what answers made of the groups in their prompts, and the weights that fit that."""

from __future__ import annotations

import pytest

from ctxproxy.core.learned_priorities import LEARNED, LEAST, MOST_GROUPS, NEWEST, Cell, Tally, added, as_line, fit, outcomes, read_lines
from ctxproxy.core.priorities import BONUSES, SCORES, priorities
from ctxproxy.core.stages.base import make_stage
from ctxproxy.core.transcript import Transcript
from tests.core.histories import assistant, call, result, transcript, user

GATE = "The old garden gate behind the house by the lake opens with 7731, said Ann to Bob."
END = [message for n in range(NEWEST // 2) for message in (user(f"part {n}"), assistant(f"done {n}"))] + [user("What is the gate's code?")]


def talk(*told: object) -> Transcript:
    return transcript([user("Build a boat."), *told, *END])  # type: ignore[list-item]


def kinds(answer: str, of: Transcript) -> dict[str, Tally]:
    return {cell.kind: tally for cell, tally in outcomes(of, 100, answer).items()}


# ---------------------------------------------------------------- what is logged


def test_what_an_answer_quotes_of_the_older_groups_is_counted_by_their_features() -> None:
    told = talk(assistant("A boat it is."), user(GATE), call("c"), result("c", "Error: no such file hull.txt"), user("I like tea."))
    found = outcomes(told, 100, "It is 7731.")
    assert found == {
        Cell("assistant", "", False, 0): Tally(1, 0),
        Cell("user", "", False, 1): Tally(1, 1),
        Cell("key_result", "", True, 1): Tally(1, 0),
        Cell("user", "preference", False, 2): Tally(1, 0),
    }


def test_what_stays_by_its_place_was_rewritten_or_is_among_the_newest_teaches_nothing() -> None:
    whole = talk(user(GATE))
    assert set(kinds("It is 7731.", whole)) == {"user"}
    shortened = Transcript((whole.entries[0], whole.entries[1]._replace(origin="rewritten"), *whole.entries[2:]))
    assert kinds("It is 7731.", shortened) == {}
    assert kinds("It is 7731.", transcript([user("Build a boat."), user(GATE), user("And?")])) == {}


def test_a_turn_of_speech_that_comes_again_and_again_quotes_nothing() -> None:
    told = talk(
        *(one for n in range(6) for one in (user(f"part {n}"), assistant("All right, noted, just tell me if there is anything else."))), user(GATE)
    )
    assert kinds("It is 7731. All right, noted, just tell me if there is anything else.", told)["assistant"].quoted == 0
    assert sum(tally.quoted for tally in outcomes(told, 100, "It is 7731. All right, noted.").values()) == 1


def test_of_a_very_long_prompt_some_groups_stand_for_all() -> None:
    told = talk(*(one for n in range(MOST_GROUPS) for one in (user(f"part {n}"), assistant(f"done {n}"))))
    assert MOST_GROUPS / 2 < sum(tally.seen for tally in outcomes(told, 100, "It is 7731.").values()) <= MOST_GROUPS


def test_a_log_is_read_as_it_was_written_and_what_is_broken_in_it_is_passed_over() -> None:
    one = {Cell("user", "rule", True, 1): Tally(3, 1)}
    other = {Cell("user", "rule", True, 1): Tally(2, 2), Cell("result", "", False, 4): Tally(1, 0)}
    lines = [as_line(one), b'[["user", "rule", tr', as_line(other), b'[["nonsense", "", true, 1, 1, 1]]\n', b"{}\n"]
    assert read_lines(lines) == added(one, other) == {Cell("user", "rule", True, 1): Tally(5, 3), Cell("result", "", False, 4): Tally(1, 0)}
    assert read_lines([]) == {}


# ---------------------------------------------------------------- what is learned


def world(**chances: float) -> dict[Cell, Tally]:
    """Prompts in which each kind is quoted with its chance, 1 % else."""
    return {Cell(kind, "", False, fifth): Tally(400, round(400 * chances.get(kind, 0.01))) for kind in LEARNED for fifth in range(5)}


def test_001_80_what_is_quoted_more_often_comes_to_outrank_what_is_not() -> None:
    learned = fit(world(result=0.3, key_result=0.02))
    assert learned
    assert learned.scores["result"] > learned.scores["key_result"]
    assert learned.scores["result"] > SCORES["result"]
    assert learned.after > learned.before + 0.1
    assert learned.total == Tally(12_000, sum(tally.quoted for tally in world(result=0.3, key_result=0.02).values()))


def test_001_80_the_weights_can_be_loaded_and_change_what_a_group_is_worth() -> None:
    learned = fit(world(result=0.3, key_result=0.02))
    assert learned
    stage = make_stage({"stage": "priority_window", "scores": learned.scores, "bonuses": learned.bonuses})
    messages = [user("x"), call("c"), result("c", "plain lines"), call("d"), result("d", "fatal: broken"), user("y")]
    _, plain, failed, _ = priorities(transcript(messages), 100)
    _, plain_now, failed_now, _ = priorities(transcript(messages), 100, scores=stage.scores, bonuses=stage.bonuses)  # type: ignore[attr-defined]
    assert plain.key > failed.key
    assert plain_now.key < failed_now.key


def test_where_outcomes_are_as_the_defaults_say_the_weights_stay_near_them() -> None:
    learned = fit({cell: Tally(one.seen, 20) for cell, one in world().items()})
    assert learned
    order = sorted(LEARNED, key=lambda kind: learned.scores[kind])
    assert max(abs(learned.scores[kind] - learned.scores[order[0]]) for kind in LEARNED) < 2.5
    few = fit({Cell("result", "", False, 0): Tally(LEAST * 2, LEAST)})
    assert few
    assert all(abs(few.scores[kind] - SCORES[kind]) < 0.01 for kind in LEARNED if kind != "result")


def test_rules_and_wishes_are_obeyed_rather_than_quoted_and_never_lose_by_it() -> None:
    told = {Cell("user", wish, False, 2): Tally(1000, 0) for wish in ("", "preference", "rule")}
    learned = fit({**world(result=0.3), **told})  # type: ignore[dict-item]
    assert learned
    assert (learned.scores["user"], learned.bonuses["preference"], learned.bonuses["rule"]) == (
        SCORES["user"], BONUSES["preference"], BONUSES["rule"],
    )  # fmt: skip


def test_a_keyword_and_newness_are_learned_too() -> None:
    cells = {Cell("assistant", "", keyed, fifth): Tally(400, 20 + 200 * keyed - 4 * fifth) for keyed in (False, True) for fifth in range(5)}
    learned = fit(cells)
    assert learned
    assert learned.bonuses["keyword"] > BONUSES["keyword"]
    assert learned.bonuses["recency"] < BONUSES["recency"]


@pytest.mark.parametrize(
    ("seen", "quoted"), [(0, 0), (LEAST * 4, LEAST - 1), (LEAST * 4, LEAST * 4 - LEAST + 1)], ids=["nothing", "few quoted", "few unquoted"]
)
def test_too_little_teaches_nothing(seen: int, quoted: int) -> None:
    assert fit({Cell("result", "", False, 0): Tally(seen, quoted)}) is None


def test_whatever_was_learned_stays_within_bounds() -> None:
    learned = fit({Cell("result", "", False, 0): Tally(10**6, 10**6 - 100), Cell("small_talk", "", False, 0): Tally(10**6, 1)})
    assert learned
    assert learned.scores["result"] == 8.9
    assert learned.scores["small_talk"] == 0.5
