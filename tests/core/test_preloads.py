"""The block that a new session of a known user starts with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxproxy.core.carryover import Digest
from ctxproxy.core.frames import MEMORY, is_filler, is_frame
from ctxproxy.core.memory_points import HEADINGS
from ctxproxy.core.messages import Message, make, text_of
from ctxproxy.core.plan import observed, plan
from ctxproxy.core.points import MemoryPoint, Point
from ctxproxy.core.policy import Policy
from ctxproxy.core.preloads import ITEM_TOKENS, MOST_TOKENS, Past, Remembered, block_of, fits_beside, lighter, room_for, told_of
from ctxproxy.core.records import SessionKey, Summary
from ctxproxy.core.rescue_plans import cleared
from ctxproxy.core.situation import Situation
from tests.core.chains import Chain
from tests.core.histories import assistant, count, count_text, talk, user

FACT = MemoryPoint(1, Point("entity", "name", "Ann", "aa", 1.0, 1.0), SessionKey("0f" * 16, "earlier"))
ONE, TWO = Remembered("2026-11-29", "The host is db-7."), Remembered("2026-11-28", "They chose blue.\nNot red.")


def summary(text: str, created: float) -> Summary:
    return Summary("aa", text, "llm", "m", 2, 5, 0.0, 1.0, created)


def digest(text: str, created: float) -> Digest:
    return Digest("bb", text, 4, created)


def with_block(history: int = 3, limit: int = 4000) -> Situation:
    block = block_of(Past(sessions=[ONE]), 500, count_text, "en")
    assert block
    situation = Chain(Policy()).situation(talk(history), limit)
    return replace(situation, preload=block.messages, budget=replace(situation.budget, fixed=situation.budget.fixed + 40))


def test_the_block_tells_of_sessions_first_and_then_of_pieces() -> None:
    block = block_of(Past([FACT], [ONE, TWO], [Remembered("2026-11-01", "a piece")]), 500, count_text, "en")
    assert block and block.items == 4
    title, sessions, pieces = MEMORY["en"]
    assert text_of(block.messages[0]).splitlines() == [
        title,
        HEADINGS["en"],
        "- name: Ann",
        sessions,
        "- 2026-11-29: The host is db-7.",
        "- 2026-11-28: They chose blue.",
        "  Not red.",
        pieces,
        "- 2026-11-01: a piece",
    ]
    assert [message.role for message in block.messages] == ["user", "assistant"]
    assert is_frame(block.messages[0])
    assert is_filler(block.messages[1])


def test_it_speaks_the_language_of_the_request() -> None:
    block = block_of(Past(sessions=[ONE]), 500, count_text, "zh")
    assert block and text_of(block.messages[0]).startswith(MEMORY["zh"].title)
    assert is_frame(block.messages[0])


def test_with_nothing_to_tell_there_is_none() -> None:
    assert block_of(Past(), 500, count_text, "en") is None
    assert block_of(Past(sessions=[Remembered("2026-11-29", " ")]), 500, count_text, "en") is None
    assert block_of(Past([FACT], [ONE], [ONE]), 30, count_text, "en") is None


@pytest.mark.parametrize("room", [80, 200, 600, MOST_TOKENS])
def test_it_stays_within_its_room_and_each_item_within_its_own(room: int) -> None:
    long = [Remembered("2026-11-29", "\n".join(f"The host number {n} is db-{n}.example.net." for n in range(300)))] * 8
    block = block_of(Past([], long[:3], long[3:]), room, count_text, "en")
    assert block
    assert sum(map(count, block.messages)) <= room + 8
    items = text_of(block.messages[0]).replace(MEMORY["en"].pieces, "").split("\n- ")[1:]
    assert len(items) == block.items
    assert all(count_text(f"- {one}".strip()) <= ITEM_TOKENS for one in items)


def test_the_room_is_a_share_of_the_budget_up_to_a_bound() -> None:
    assert (room_for(1000), room_for(1_000_000)) == (100, MOST_TOKENS)


@pytest.mark.parametrize(
    ("summaries", "last", "told"),
    [
        ([], None, ""),
        ([], digest("d", 1.0), "d"),
        ([summary("old", 1.0), summary("new", 2.0)], None, "new"),
        ([summary("s", 2.0)], digest("d", 3.0), "s\nd"),
        ([summary("s", 2.0)], digest("d", 1.0), "s"),
    ],
)
def test_a_session_is_told_by_its_newest_summary_and_what_came_after_it(summaries: list[Summary], last: Digest | None, told: str) -> None:
    assert told_of(summaries, last) == told


def test_the_block_stands_behind_the_system_messages_and_no_stage_touches_it() -> None:
    s = with_block(60, 900)
    made = plan(s)
    assert made.actions
    assert made.messages[:2] == s.preload
    assert plan(with_block()).messages == (*s.preload, *talk(3))
    assert plan(with_block()).changed


@pytest.mark.parametrize("before", [[], [make({"role": "system", "content": "note"})]], ids=["alone", "behind a system message"])
def test_where_an_answer_stands_first_the_block_needs_none_of_its_own(before: list[Message]) -> None:
    s = with_block()
    begun = Chain(Policy()).situation([*before, assistant("Hello, what can I do?"), user("This.")], 4000)
    sent = plan(replace(begun, preload=s.preload)).messages
    assert [m.role for m in sent if m.role != "system"] == ["user", "assistant", "user"]


def test_what_is_only_watched_goes_out_without_it() -> None:
    s = with_block()
    seen = observed(s, plan(s))
    assert not seen.changed
    assert seen.messages == tuple(talk(3))


def test_it_gives_way_where_it_is_too_much_for_the_prompt() -> None:
    s = with_block()
    tokens = sum(map(count, s.preload))
    assert lighter(s, tokens * 4) is s
    light = lighter(s, tokens * 4 - 1)
    assert (light.preload, light.budget.fixed) == ((), s.budget.fixed - tokens)
    assert lighter(light, 0) is light
    assert not fits_beside(10, 39)
    assert cleared(lighter(s, 0)).messages == (talk(3)[-1],)
