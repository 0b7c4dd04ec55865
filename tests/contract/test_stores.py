"""What every store must do, run over each of them with one handle and with two."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core.effects import (
    AppendMessages,
    CountUse,
    DropDue,
    DropPin,
    Effect,
    Forget,
    MadeOf,
    MoveTip,
    OpenSession,
    PutCheckpoint,
    PutDue,
    PutPin,
    PutSummary,
    PutWindow,
)
from ctxproxy.core.messages import ROOT
from ctxproxy.core.records import LogPage, Pin, Session, SessionKey, Span, Spent, StoredMessage, Totals, WindowBelief
from ctxproxy.errors import BadRequest, StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.store import MemoryStore
from tests.contract.conftest import Handles
from tests.contract.samples import KEY, OTHER, begun, chain, checkpoint, due, message, summary

STRANGE_TEXTS = ["", "a\0b", "漢字", "\ud83c", "x" * 100_000]


async def test_a_new_store_holds_nothing(stores: Handles) -> None:
    read = stores.read
    assert await read.session(KEY) is None
    assert await read.known(KEY, [message("a").tip]) == 0
    assert await read.history(KEY, message("a").tip) == []
    assert await read.log(KEY, 0, 10) == LogPage(())
    assert await read.leaves(KEY) == []
    assert await read.all_checkpoints(KEY) == []
    assert await read.summaries(KEY, None) == []
    assert await read.pins(KEY) == []
    assert await read.windows() == []
    assert (await read.sessions(10, None, "")).sessions == ()
    assert await read.find("talk") == []
    assert await read.totals() == Totals()
    await read.ping()


async def test_a_session_keeps_what_its_first_request_said_and_notes_the_last(stores: Handles) -> None:
    first = OpenSession(KEY, 10.0, "thin", "frame one", (b"{}", b"\xff\0"))
    await stores.write.apply([first])
    await stores.write.apply([OpenSession(KEY, 20.5, "unknown", "", None)])
    expected = Session(KEY, "", "thin", "frame one", (b"{}", b"\xff\0"), created=10.0, last_used=20.5)
    assert await stores.read.session(KEY) == expected
    await stores.write.apply([OpenSession(KEY, 21.0, "full", "frame two", ())])
    assert await stores.read.session(KEY) == replace(expected, manner="full", frame="frame two", system=(), last_used=21.0)


async def test_what_goes_on_with_a_session_that_was_erased_is_not_carried_out(stores: Handles) -> None:
    trunk = chain("a", "b")
    await stores.write.apply(begun(KEY, trunk[:1]))
    going_on = [OpenSession(KEY, 9.0, made=1.0), AppendMessages(KEY, tuple(trunk[1:])), PutPin(KEY, Pin(1, "text", 9.0))]
    await stores.write.erase(KEY)
    assert not await stores.write.apply(going_on)
    assert await stores.read.session(KEY) is None
    await stores.write.apply(begun(KEY, trunk[:1], now=2.0))
    assert not await stores.write.apply(going_on)
    assert (await stores.read.history(KEY, trunk[1].tip), await stores.read.pins(KEY)) == ([], [])
    assert await stores.write.apply([OpenSession(KEY, 9.0, made=2.0), *going_on[1:]])
    assert (await stores.read.history(KEY, trunk[1].tip), len(await stores.read.pins(KEY))) == (trunk, 1)


@pytest.mark.parametrize("said", [True, False])
async def test_whether_a_session_has_the_recall_tool_is_said_when_it_is_made_and_for_good(stores: Handles, *, said: bool) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0, model="m", recall=said)])
    await stores.write.apply([OpenSession(KEY, 2.0, model="m", recall=not said)])
    session = await stores.read.session(KEY)
    assert session == Session(KEY, model="m", recall=said, created=1.0, last_used=2.0)
    assert (await stores.read.find("talk"), (await stores.read.sessions(10, None, "")).sessions) == ([session], (session,))


async def test_profile_and_fixed_tokens_are_kept_where_a_model_is_given(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0, profile="lost", fixed_tokens=9)])
    assert await stores.read.session(KEY) == Session(KEY, created=1.0, last_used=1.0)
    await stores.write.apply([OpenSession(KEY, 1.0, model="m\ud83c", profile="tight", fixed_tokens=7)])
    expected = Session(KEY, model="m\ud83c", profile="tight", fixed_tokens=7, created=1.0, last_used=1.0)
    assert await stores.read.session(KEY) == expected
    await stores.write.apply([OpenSession(KEY, 1.0, profile="lost", fixed_tokens=9)])
    assert await stores.read.session(KEY) == expected
    await stores.write.apply([OpenSession(KEY, 1.0, model="n")])
    assert await stores.read.session(KEY) == replace(expected, model="n", profile="", fixed_tokens=0)


@pytest.mark.parametrize("name", STRANGE_TEXTS)
async def test_a_session_may_have_any_name(stores: Handles, name: str) -> None:
    key = SessionKey("0f" * 16, name)
    await stores.write.apply(begun(key, chain("hello")))
    found = await stores.read.session(key)
    assert found is not None
    assert found.key == key
    assert await stores.read.find(name) == [found]


async def test_history_is_the_chain_from_the_root_to_the_tip(stores: Handles) -> None:
    trunk = chain("a", "b", "c")
    fork = chain("x", "y", parent=trunk[0].tip)
    await stores.write.apply([*begun(KEY, trunk), AppendMessages(KEY, tuple(fork))])
    assert await stores.read.history(KEY, trunk[-1].tip) == trunk
    assert await stores.read.history(KEY, trunk[1].tip) == trunk[:2]
    assert await stores.read.history(KEY, fork[-1].tip) == [trunk[0], *fork]
    assert await stores.read.history(KEY, "") == []
    assert await stores.read.history(KEY, "no tip \ud83c") == []
    assert await stores.read.history(OTHER, trunk[-1].tip) == []


async def test_of_a_span_come_the_first_messages_that_fit_but_one_at_least(stores: Handles) -> None:
    rows = chain("a", "b" * 100, "c", "d")
    aside = chain("x", parent=rows[0].tip)
    await stores.write.apply([*begun(KEY, rows), AppendMessages(KEY, tuple(aside))])
    whole, two = Span(ROOT, rows[-1].tip), len(rows[2].raw) + len(rows[3].raw)
    for span, most, expected in (
        (whole, 1_000_000, rows),
        (whole, 1, rows[:1]),
        (Span(rows[0].tip, rows[-1].tip), 1, rows[1:2]),
        (Span(rows[1].tip, rows[-1].tip), two, rows[2:]),
        (Span(rows[1].tip, rows[-1].tip), two - 1, rows[2:3]),
        (Span(rows[0].tip, aside[0].tip), two, aside),
        (Span(rows[1].tip, aside[0].tip), two, []),
        (Span(rows[-1].tip, rows[0].tip), two, []),
        (Span(rows[0].tip, rows[0].tip), two, []),
        (Span(ROOT, "ab" * 16), two, []),
    ):
        assert await stores.read.span(KEY, span, most) == expected
    assert await stores.read.span(OTHER, whole, two) == []


async def test_what_users_said_last_is_found_on_the_way_to_a_tip(stores: Handles) -> None:
    rows = chain("a", "b", "c", "d")
    rows[2] = replace(rows[2], role="assistant")
    await stores.write.apply([*begun(KEY, rows), AppendMessages(KEY, tuple(chain("x", parent=rows[0].tip)))])
    assert await stores.read.heard(KEY, rows[3].tip, 2) == [rows[1], rows[3]]
    assert await stores.read.heard(KEY, rows[2].tip, 9) == rows[:2]
    assert await stores.read.heard(KEY, ROOT, 2) == await stores.read.heard(OTHER, rows[3].tip, 2) == []


async def test_the_log_comes_page_by_page_in_the_order_of_writing_with_every_branch(stores: Handles) -> None:
    trunk, fork = chain("a", "b", "c"), chain("x", "y", parent=message("a").tip)
    await stores.write.apply([*begun(KEY, trunk), AppendMessages(KEY, tuple(fork)), *begun(OTHER, chain("o"))])
    await stores.write.apply([AppendMessages(KEY, tuple(chain("d", parent=trunk[-1].tip))), Forget(KEY, trunk[1].tip, erase=True)])
    written = [trunk[0], replace(trunk[1], raw=b""), trunk[2], *fork, *chain("d", parent=trunk[-1].tip)]
    for size in (1, 2, 3, 6, 7):
        found: list[StoredMessage] = []
        after: int | None = 0
        while after is not None:
            page = await stores.read.log(KEY, after, size)
            assert len(page.messages) <= size
            found += page.messages
            after = page.following
        assert found == written


async def test_a_long_history_comes_back_whole(stores: Handles) -> None:
    trunk = chain(*(f"message {n}" for n in range(1200)))
    await stores.write.apply(begun(KEY, trunk))
    assert await stores.read.history(KEY, trunk[-1].tip) == trunk


@pytest.mark.parametrize("stored", [0, 1, 2, 15, 16, 17, 271, 272, 273, 4400])
async def test_known_is_the_length_of_the_stored_prefix(stores: Handles, stored: int) -> None:
    trunk = chain(*(str(n) for n in range(4400)))
    tips = [one.tip for one in trunk]
    await stores.write.apply([OpenSession(KEY, 1.0), AppendMessages(KEY, tuple(trunk[:stored]))])
    assert await stores.read.known(KEY, tips) == stored
    assert await stores.read.known(KEY, tips[: stored + 3]) == stored
    assert await stores.read.known(KEY, tips[:stored]) == stored
    assert await stores.read.known(OTHER, tips) == 0
    assert await stores.read.known(KEY, []) == 0


@pytest.mark.parametrize("raw", [b"\0", b"\xff\xfe", b'{"content":"\\ud83c"}', b"x" * 3_000_000])
async def test_a_message_may_hold_any_bytes(stores: Handles, raw: bytes) -> None:
    odd = replace(message("odd"), raw=raw, role="r\0\ud83c")
    await stores.write.apply(begun(KEY, [odd]))
    assert await stores.read.history(KEY, odd.tip) == [odd]


async def test_appending_twice_changes_nothing(stores: Handles) -> None:
    trunk = chain("a", "b")
    await stores.write.apply(begun(KEY, trunk))
    again = [replace(one, raw=b"another form", created=99.0) for one in trunk]
    await stores.write.apply([AppendMessages(KEY, tuple(again))])
    assert await stores.read.history(KEY, trunk[-1].tip) == trunk
    assert (await stores.read.totals()).messages == 2


async def test_a_whole_message_replaces_a_partial_one_and_never_the_other_way_round(stores: Handles) -> None:
    partial = message("an answer that", partial=True)
    whole = replace(partial, raw=b"the whole one", partial=False, tokens=7, created=2.0)
    await stores.write.apply(begun(KEY, [partial]))
    assert await stores.read.history(KEY, partial.tip) == [partial]
    await stores.write.apply([AppendMessages(KEY, (whole,))])
    assert await stores.read.history(KEY, partial.tip) == [whole]
    await stores.write.apply([AppendMessages(KEY, (partial,))])
    assert await stores.read.history(KEY, partial.tip) == [whole]


async def test_a_message_without_its_parent_is_not_taken(stores: Handles) -> None:
    trunk = chain("a", "b", "c")
    await stores.write.apply([OpenSession(KEY, 1.0), AppendMessages(KEY, (trunk[0], trunk[2]))])
    assert await stores.read.known(KEY, [one.tip for one in trunk]) == 1
    assert await stores.read.leaves(KEY) == [trunk[0].tip]


async def test_leaves_are_the_ends_of_the_branches_the_last_written_first(stores: Handles) -> None:
    trunk = chain("a", "b", "c")
    fork = chain("x", parent=trunk[0].tip)
    await stores.write.apply(begun(KEY, trunk))
    assert await stores.read.leaves(KEY) == [trunk[-1].tip]
    await stores.write.apply([AppendMessages(KEY, tuple(fork))])
    assert await stores.read.leaves(KEY) == [fork[-1].tip, trunk[-1].tip]
    onward = chain("d", parent=trunk[-1].tip)
    await stores.write.apply([AppendMessages(KEY, tuple(onward))])
    assert await stores.read.leaves(KEY) == [onward[-1].tip, fork[-1].tip]


async def test_a_message_that_is_given_twice_before_its_child_is_no_leaf(stores: Handles) -> None:
    first, second = chain("a", "b")
    await stores.write.apply([OpenSession(KEY, 1.0), AppendMessages(KEY, (first, first, second))])
    assert await stores.read.leaves(KEY) == [second.tip]


async def test_a_tip_moves_only_from_where_it_is_expected_and_the_rest_is_carried_out_all_the_same(stores: Handles) -> None:
    trunk = chain("a", "b")
    assert await stores.write.apply(begun(KEY, trunk))
    late = chain("c", parent=trunk[-1].tip)
    lost = [MoveTip(KEY, "", late[-1].tip), AppendMessages(KEY, tuple(late)), CountUse(KEY, requests=1)]
    assert not await stores.write.apply(lost)
    session = await stores.read.session(KEY)
    assert session is not None
    assert (session.tip, session.requests) == (trunk[-1].tip, 1)
    assert await stores.read.history(KEY, late[-1].tip) == [*trunk, *late]
    assert await stores.write.apply([MoveTip(KEY, trunk[-1].tip, late[-1].tip)])
    assert await stores.write.apply([MoveTip(KEY, None, "")])


async def test_of_a_list_with_a_required_move_nothing_is_carried_out_if_the_tip_stands_elsewhere(stores: Handles) -> None:
    trunk = chain("a", "b")
    belief = WindowBelief("u", "m", 1, "learned", 0.5, 1.0)
    assert await stores.write.apply([*begun(KEY, trunk[:1])[:2], MoveTip(KEY, "", trunk[0].tip, required=True)])
    before = await _all_of(stores.read)
    missed = MoveTip(KEY, "", trunk[1].tip, required=True)
    for others in ([*begun(OTHER, trunk), PutWindow(belief), CountUse(KEY, 1)], [Forget(KEY, trunk[0].tip, erase=True)]):
        assert not await stores.write.apply([*others, missed, AppendMessages(KEY, tuple(trunk))])
        assert await _all_of(stores.read) == before
    assert not await stores.write.apply([*begun(OTHER, trunk), MoveTip(SessionKey("00" * 16, "unknown"), None, "", required=True)])
    assert await _all_of(stores.read) == before
    assert await stores.write.apply([AppendMessages(KEY, tuple(trunk)), MoveTip(KEY, trunk[0].tip, trunk[1].tip, required=True)])
    assert await stores.read.history(KEY, trunk[1].tip) == trunk


async def test_of_many_that_move_a_tip_at_once_one_wins(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0)])
    handles = (stores.write, stores.read)
    moves = [handles[n % 2].apply([MoveTip(KEY, "", f"{n:032x}"), CountUse(KEY, requests=1)]) for n in range(40)]
    outcomes = await asyncio.gather(*moves)
    session = await stores.read.session(KEY)
    assert session is not None
    assert [n for n, moved in enumerate(outcomes) if moved] == [int(session.tip, 16)]
    assert session.requests == 40


async def test_messages_and_turns_are_counted_once_whoever_sends_them_again(stores: Handles) -> None:
    rows = chain("a", "b", "c")
    for _ in range(2):
        await stores.write.apply([*begun(KEY, rows), AppendMessages(KEY, tuple(rows))])
    session = await stores.read.session(KEY)
    assert session is not None
    assert (session.messages, session.turns) == (3, sum(row.role == "user" for row in rows))


async def test_use_is_counted(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0), OpenSession(OTHER, 1.0)])
    await stores.write.apply([CountUse(KEY, 1, 200, 100, 2), CountUse(KEY, 1, 5), CountUse(OTHER, tokens_in=2**40)])
    session = await stores.read.session(KEY)
    assert session is not None
    assert (session.requests, session.tokens_in, session.tokens_sent, session.compactions) == (2, 205, 100, 2)
    assert await stores.read.totals() == Totals(2, 0, 2, 205 + 2**40, 100, 2)


async def test_what_requests_cost_adds_up_per_session_and_over_all(stores: Handles) -> None:
    first, second = Spent(1000.5, 400.25, 30, 100, 1, 900, 300), Spent(0.25, 0.5, 0, 7, 1, 2**40, 0)
    await stores.write.apply([OpenSession(KEY, 1.0), CountUse(KEY, 1, spent=first), CountUse(KEY, 1, spent=second)])
    await stores.write.apply([OpenSession(OTHER, 1.0), CountUse(OTHER, spent=Spent(cost_summaries=0.125))])
    session = await stores.read.session(KEY)
    assert session is not None
    assert session.spent == first + second
    assert (await stores.read.find("talk"), (await stores.read.sessions(10, None, "talk")).sessions[-1]) == ([session], session)
    assert (await stores.read.totals()).spent == first + second + Spent(cost_summaries=0.125)


async def test_an_effect_on_a_session_that_is_not_there_does_nothing(stores: Handles) -> None:
    trunk = chain("a")
    orphans: list[Effect] = [
        AppendMessages(KEY, tuple(trunk)),
        CountUse(KEY, 1),
        PutCheckpoint(KEY, checkpoint(trunk[0].tip)),
        PutSummary(KEY, summary(trunk[0].tip)),
        PutPin(KEY, Pin(1, "text", 1.0)),
        DropPin(KEY, 1),
        Forget(KEY, trunk[0].tip, erase=True),
    ]
    assert await stores.write.apply(orphans)
    assert not await stores.write.apply([MoveTip(KEY, None, trunk[0].tip)])
    assert await stores.read.session(KEY) is None
    assert await stores.read.totals() == Totals()


async def test_checkpoints_are_found_by_tip_and_replaced_within_a_variant(stores: Handles) -> None:
    a, b = (one.tip for one in chain("a", "b"))
    first, second = checkpoint(a, created=5.0), checkpoint(b, created=4.0)
    variant = checkpoint(a, variant="other\ud83c/trim", created=6.0)
    await stores.write.apply([OpenSession(KEY, 1.0), *(PutCheckpoint(KEY, one) for one in (first, second, variant))])
    assert await stores.read.all_checkpoints(KEY) == [variant, first, second]
    assert await stores.read.checkpoints(KEY, [b, "unknown"], None) == [second]
    assert await stores.read.checkpoints(KEY, [a, b], None) == [variant, first, second]
    assert await stores.read.checkpoints(KEY, [a, b], 2) == [variant, first, second]
    assert await stores.read.checkpoints(KEY, [a, b], 1) == [variant, second], "of each variant the one that reaches furthest, not the newest"
    assert await stores.read.checkpoints(KEY, [], None) == []
    anew = replace(first, entries=(), actions=(), wants="", created=7.0)
    await stores.write.apply([PutCheckpoint(KEY, anew)])
    assert await stores.read.all_checkpoints(KEY) == [anew, variant, second]
    assert await stores.read.all_checkpoints(OTHER) == []


async def test_of_two_checkpoints_of_one_time_the_last_written_is_the_newer(stores: Handles) -> None:
    made = [checkpoint(one.tip) for one in chain("a", "b", "c")]
    await stores.write.apply([OpenSession(KEY, 1.0), *(PutCheckpoint(KEY, one) for one in made)])
    assert await stores.read.all_checkpoints(KEY) == made[::-1]


@pytest.mark.parametrize(("before", "after", "kept"), [("extractive", "llm", "llm"), ("llm", "extractive", "llm"), ("llm", "llm", "new")])
async def test_an_extractive_summary_never_replaces_one_by_a_model(stores: Handles, before: str, after: str, kept: str) -> None:
    tip = message("a").tip
    old, new = summary(tip, "old \ud83c\0", before), summary(tip, "new", after)
    await stores.write.apply([OpenSession(KEY, 1.0), PutSummary(KEY, old), PutSummary(KEY, new)])
    assert await stores.read.summaries(KEY, None) == [new if kept in (after, "new") and after == "llm" else old]


async def test_summaries_are_found_by_tip(stores: Handles) -> None:
    made = [summary(one.tip, one.tip) for one in chain("a", "b", "c")]
    await stores.write.apply([OpenSession(KEY, 1.0), *(PutSummary(KEY, one) for one in made)])
    assert await stores.read.summaries(KEY, None) == made
    assert await stores.read.summaries(KEY, [made[1].tip, "unknown"]) == [made[1]]
    assert await stores.read.summaries(KEY, []) == []


async def test_pins_come_and_go_by_number(stores: Handles) -> None:
    pins = [Pin(number, text, float(number)) for number, text in enumerate(STRANGE_TEXTS, 1)]
    await stores.write.apply([OpenSession(KEY, 1.0), *(PutPin(KEY, pin) for pin in reversed(pins)), DropPin(KEY, 2), DropPin(KEY, 77)])
    assert await stores.read.pins(KEY) == [pin for pin in pins if pin.number != 2]


async def test_with_a_pin_go_the_decisions_that_may_hold_its_text(stores: Handles) -> None:
    trunk = chain("a", "b")
    await stores.write.apply([*begun(KEY, trunk), *begun(OTHER, trunk), PutPin(KEY, Pin(1, "p", 1.0))])
    await stores.write.apply([PutCheckpoint(key, checkpoint(trunk[1].tip)) for key in (KEY, OTHER)])
    await stores.write.apply([DropPin(KEY, 1)])
    assert await stores.read.all_checkpoints(KEY) == []
    assert len(await stores.read.all_checkpoints(OTHER)) == 1
    assert await stores.read.pins(KEY) == []


@pytest.mark.parametrize(
    ("knew_forgotten", "knew_pins", "checkpoints", "others"),
    [
        ("", ("p",), "ax", "ax"),  # of b and what came after it nothing
        ("b", ("p",), "abcx", "abcx"),
        ("b", (), "abcx", "abcx"),
        ("b", ("p", "gone"), "", "abcx"),
        ("", ("gone",), "", "ax"),
    ],
)
async def test_what_was_made_of_a_message_that_was_forgotten_meanwhile_or_with_a_pin_that_has_gone_is_not_kept(
    stores: Handles, knew_forgotten: str, knew_pins: tuple[str, ...], checkpoints: str, others: str
) -> None:
    trunk = chain("a", "b", "c")
    tips = dict(zip("abcx", [one.tip for one in (*trunk, *chain("x", parent=trunk[0].tip))], strict=True))
    await stores.write.apply([*begun(KEY, trunk), PutPin(KEY, Pin(1, "p", 1.0)), Forget(KEY, tips["b"])])
    made = [one for tip in tips.values() for one in (PutCheckpoint(KEY, checkpoint(tip)), PutSummary(KEY, summary(tip)), PutDue(KEY, due(tip)))]
    known = frozenset(tips[name] for name in knew_forgotten)
    await stores.write.apply([AppendMessages(KEY, tuple(chain("x", parent=trunk[0].tip))), MadeOf(KEY, known, knew_pins), *made])
    assert {one.tip for one in await stores.read.all_checkpoints(KEY)} == {tips[name] for name in checkpoints}
    for found in ([one.tip for one in await stores.read.summaries(KEY, None)], [one.due.tip for one in await stores.read.dues(9)]):
        assert found == [tips[name] for name in others]
    await stores.write.apply([PutCheckpoint(KEY, checkpoint(tips["c"]))])  # what another list was made from is its own affair
    assert tips["c"] in {one.tip for one in await stores.read.all_checkpoints(KEY)}


async def test_windows_are_kept_per_upstream_and_model(stores: Handles) -> None:
    belief = WindowBelief("https://b", "model\ud83c", 128_000, "default", 0.1, 1.0)
    learned = replace(belief, window=32_768, source="learned", confidence=0.9)
    other = replace(belief, upstream="https://a")
    await stores.write.apply([PutWindow(belief), PutWindow(other), PutWindow(learned)])
    assert await stores.read.windows() == [other, learned]


async def test_a_message_is_located_by_the_beginning_of_its_tip(stores: Handles) -> None:
    trunk = chain("a", "b")
    await stores.write.apply([*begun(KEY, trunk), *begun(OTHER, trunk[:1])])
    found = await stores.read.locate(trunk[1].tip[:16])
    assert [(one.key, one.message) for one in found] == [(KEY, trunk[1])]
    assert {one.key for one in await stores.read.locate(trunk[0].tip.upper())} == {KEY, OTHER}
    for nothing in ("", "0" * 16, trunk[0].tip + "0", "% _\ud83c", trunk[0].tip[:16] + "g"):
        assert await stores.read.locate(nothing) == []


async def test_at_most_ten_messages_are_located(stores: Handles) -> None:
    one = message("the same everywhere")
    for n in range(12):
        await stores.write.apply(begun(SessionKey("0f" * 16, f"talk {n}"), [one]))
    assert len(await stores.read.locate(one.tip)) == 10


async def test_sessions_are_paged_the_last_used_first(stores: Handles) -> None:
    times = [3.0, 1.0, 2.0, 2.0, 0.1 + 0.2, 5.0, 2.0]
    for n, now in enumerate(times):
        await stores.write.apply([OpenSession(SessionKey("0f" * 16, f"talk {n}"), now)])
    expected = [n for _, n in sorted(((now, n) for n, now in enumerate(times)), reverse=True)]
    seen, cursor = [], None
    while True:
        page = await stores.read.sessions(2, cursor, "talk")
        seen += [int(session.key.name[5:]) for session in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == expected
    assert [s.key.name for s in (await stores.read.sessions(10, None, "k 3")).sessions] == ["talk 3"]
    assert (await stores.read.sessions(10, None, "%")).sessions == ()
    assert (await stores.read.sessions(7, None, "")).next_cursor is None
    assert len((await stores.read.sessions(2**80, None, "")).sessions) == 7
    assert len((await stores.read.sessions(-1, None, "")).sessions) == 1


@pytest.mark.parametrize("cursor", ["", "x", "0x1p+0_", "_1", "nope_1", "0x1p+0_1;", "1e999999_1x"])
async def test_a_cursor_that_no_page_gave_is_refused(stores: Handles, cursor: str) -> None:
    with pytest.raises(BadRequest):
        await stores.read.sessions(10, cursor, "")


async def test_sessions_of_all_tenants_are_found_by_name(stores: Handles) -> None:
    keys = [SessionKey(f"{n:032x}", "talk") for n in range(3)]
    for key in (*keys, OTHER):
        await stores.write.apply([OpenSession(key, 1.0)])
    assert [session.key for session in await stores.read.find("talk")] == keys


async def test_tenants_are_found_by_the_beginning_of_their_digits(stores: Handles) -> None:
    tenants = [f"{n:02x}" * 16 for n in (1, 2, 31, *range(160, 174))]
    await stores.write.apply([OpenSession(SessionKey(tenant, name), 1.0) for tenant in tenants for name in ("a", "b")])
    assert await stores.read.tenants("1") == ["1f" * 16]
    assert await stores.read.tenants("1f" * 16) == ["1f" * 16]
    assert await stores.read.tenants("0") == ["01" * 16, "02" * 16]
    assert await stores.read.tenants("a") == tenants[3:13]
    for prefix in ("ff", "zz", "\ud83c"):
        assert await stores.read.tenants(prefix) == []


async def test_an_erased_session_is_gone_and_others_keep_what_they_share_with_it(stores: Handles) -> None:
    trunk = chain("a", "b")
    for key in (KEY, OTHER):
        await stores.write.apply([*begun(key, trunk), PutPin(key, Pin(1, "pin", 1.0)), Forget(key, trunk[0].tip)])
        await stores.write.apply([PutCheckpoint(key, checkpoint(trunk[0].tip)), PutSummary(key, summary(trunk[0].tip))])
    other = await stores.read.session(OTHER)
    assert await stores.write.erase(KEY)
    assert await stores.read.session(KEY) is None
    assert await stores.read.history(KEY, trunk[-1].tip) == []
    assert (await stores.read.pins(KEY), await stores.read.summaries(KEY, None), await stores.read.all_checkpoints(KEY)) == ([], [], [])
    assert await stores.read.session(OTHER) == other
    assert await stores.read.history(OTHER, trunk[-1].tip) == trunk
    assert not await stores.write.erase(KEY)


async def test_a_session_may_begin_anew_after_it_was_erased(stores: Handles) -> None:
    await stores.write.apply([*begun(KEY, chain("a", "b")), Forget(KEY, message("a").tip)])
    await stores.write.erase(KEY)
    await stores.write.apply(begun(KEY, chain("a"), now=9.0))
    assert await stores.read.session(KEY) == Session(KEY, message("a").tip, created=9.0, last_used=9.0, messages=1, turns=1, is_leaf=True)


async def test_a_forgotten_message_is_noted_and_its_bytes_stay_while_the_decisions_that_may_hold_it_go(stores: Handles) -> None:
    trunk = chain("a", "b")
    await stores.write.apply([*begun(KEY, trunk), *_decisions(trunk[0].tip), *_decisions(trunk[1].tip), Forget(KEY, trunk[1].tip)])
    session = await stores.read.session(KEY)
    assert session is not None
    assert session.forgotten == {trunk[1].tip}
    assert await stores.read.history(KEY, trunk[-1].tip) == trunk
    assert [one.tip for one in await stores.read.all_checkpoints(KEY)] == [trunk[0].tip]
    assert [one.tip for one in await stores.read.summaries(KEY, None)] == [trunk[0].tip]


async def test_an_erased_message_leaves_a_tombstone_and_takes_every_decision_over_it_along(stores: Handles) -> None:
    trunk = chain("a", "b", "c")
    fork = chain("x", parent=trunk[0].tip)
    decisions = [put for one in (trunk[0], trunk[1], trunk[2], fork[0]) for put in _decisions(one.tip)]
    await stores.write.apply([*begun(KEY, trunk), AppendMessages(KEY, tuple(fork)), *_decisions(""), *decisions])
    await stores.write.apply([Forget(KEY, trunk[1].tip, erase=True)])
    assert await stores.read.history(KEY, trunk[-1].tip) == [trunk[0], replace(trunk[1], raw=b""), trunk[2]]
    apart = {"", trunk[0].tip, fork[0].tip}
    assert {one.tip for one in await stores.read.all_checkpoints(KEY)} == apart
    assert {one.tip for one in await stores.read.summaries(KEY, None)} == apart


def _decisions(tip: str) -> list[Effect]:
    return [PutCheckpoint(KEY, checkpoint(tip)), PutSummary(KEY, summary(tip))]


async def test_an_erased_message_does_not_come_back_when_it_is_sent_again(stores: Handles) -> None:
    partial = message("a secret", partial=True)
    await stores.write.apply([*begun(KEY, [partial]), Forget(KEY, partial.tip, erase=True)])
    await stores.write.apply([AppendMessages(KEY, (replace(partial, partial=False),))])
    assert await stores.read.history(KEY, partial.tip) == [replace(partial, raw=b"", partial=False)]


async def test_an_erased_message_stays_with_other_sessions(stores: Handles) -> None:
    trunk = chain("a")
    await stores.write.apply([*begun(KEY, trunk), *begun(OTHER, trunk), Forget(KEY, trunk[0].tip, erase=True)])
    assert await stores.read.history(OTHER, trunk[0].tip) == trunk


async def test_many_tasks_write_at_once_and_each_sees_its_own(stores: Handles) -> None:
    async def talk(n: int) -> list[StoredMessage]:
        key, trunk = SessionKey("0f" * 16, f"talk {n}"), chain(*(f"{n} {m}" for m in range(10)))
        for one in trunk:
            assert await stores.write.apply([OpenSession(key, 1.0), AppendMessages(key, (one,)), MoveTip(key, one.parent, one.tip)])
        assert await stores.read.history(key, trunk[-1].tip) == trunk
        return trunk

    await asyncio.gather(*(talk(n) for n in range(30)))
    assert await stores.read.totals() == Totals(sessions=30, messages=300)


async def test_a_closed_store_says_so_and_may_be_closed_twice(stores: Handles) -> None:
    await stores.write.close()
    await stores.write.close()
    with pytest.raises(StoreUnavailable):
        await stores.write.apply([OpenSession(KEY, 1.0)])
    with pytest.raises(StoreUnavailable):
        await stores.write.ping()
    with pytest.raises(StoreUnavailable):
        await stores.write.erase(KEY)


KEYS = st.sampled_from([KEY, OTHER])
TREE = [*chain("a", "b", "c", "d"), *chain("x", "y", parent=message("a").tip), *chain("z")]
PARTIALS = [replace(one, raw=one.raw[:9], partial=True) for one in TREE]
TIPS = st.sampled_from(["", *(one.tip for one in TREE)])
NUMBERS = st.integers(0, 3)
EFFECTS: st.SearchStrategy[Effect] = st.one_of(
    st.builds(OpenSession, KEYS, NUMBERS.map(float), st.sampled_from(["unknown", "full", "thin"]), st.sampled_from(["", "f", "g"])),
    st.builds(AppendMessages, KEYS, st.lists(st.sampled_from(TREE + PARTIALS), max_size=4).map(tuple)),
    st.builds(MoveTip, KEYS, st.none() | TIPS, TIPS, st.booleans()),
    st.builds(CountUse, KEYS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.builds(Spent, NUMBERS.map(float), reported_requests=NUMBERS)),
    st.builds(PutCheckpoint, KEYS, st.builds(checkpoint, TIPS, created=NUMBERS.map(float), variant=st.sampled_from("vw"))),
    st.builds(PutSummary, KEYS, st.builds(summary, TIPS, st.sampled_from(["s", "t"]), st.sampled_from(["llm", "extractive"]))),
    st.builds(PutPin, KEYS, st.builds(Pin, NUMBERS, st.text(max_size=3), st.just(1.0))),
    st.builds(DropPin, KEYS, NUMBERS),
    st.builds(MadeOf, KEYS, st.frozensets(TIPS, max_size=3), st.lists(st.text(max_size=3), max_size=1).map(tuple)),
    st.builds(PutDue, KEYS, st.builds(due, TIPS)),
    st.builds(DropDue, KEYS, st.sampled_from(["note", "points"]), TIPS),
    st.builds(Forget, KEYS, TIPS, st.booleans()),
    st.builds(PutWindow, st.builds(WindowBelief, st.sampled_from("ab"), st.just("m"), NUMBERS, st.just("learned"), st.just(0.5), st.just(1.0))),
)
STEPS = st.lists(st.lists(EFFECTS, max_size=6) | KEYS, max_size=12)


async def _all_of(store: Store) -> list[object]:
    """Everything that can be asked, answered."""
    seen: list[object] = [await store.windows(), await store.totals(), await store.sessions(10, None, ""), await store.facts.unread(9)]
    for key in (KEY, OTHER):
        seen += [await store.session(key), await store.leaves(key), await store.all_checkpoints(key), await store.summaries(key, None)]
        seen += [(await store.log(key, 0, 100)).messages, await store.pins(key), await store.known(key, [one.tip for one in TREE[:4]])]
        seen += [[one for one in await store.dues(99) if one.session == key], *[await store.history(key, one.tip) for one in TREE]]
        seen += [await store.span(key, Span(after, one.tip), 70) for after in (ROOT, TREE[0].tip) for one in TREE[:5]]
    return seen


@given(steps=STEPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_sequence_of_effects_leaves_a_store_as_it_leaves_the_one_in_memory(stores: Handles, steps: list[list[Effect] | SessionKey]) -> None:
    for key in (KEY, OTHER):
        await stores.write.erase(key)
    await stores.write.apply([PutWindow(WindowBelief(name, "m", 0, "learned", 0.5, 1.0)) for name in "ab"])
    model = MemoryStore()
    await model.apply([PutWindow(WindowBelief(name, "m", 0, "learned", 0.5, 1.0)) for name in "ab"])
    for step in steps:
        if isinstance(step, SessionKey):
            assert await stores.write.erase(step) == await model.erase(step)
        else:
            assert await stores.write.apply(step) == await model.apply(step)
        assert await _all_of(stores.read) == await _all_of(model)
