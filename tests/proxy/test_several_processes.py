"""Two proxies on one data folder, as two workers have it: whichever gets a request, the conversation is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxproxy import wiring
from ctxproxy.core.messages import read, text_of
from ctxproxy.proxy import claims, keeping
from ctxproxy.proxy.restoring import restore_for
from ctxproxy.workers import Seat
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running, Said
from tests.proxy.test_background import FILLER, SUMMARIZING, SUMMARY, array, asked, is_summary, talk
from tests.proxy.test_recovery import TOO_LONG
from tests.proxy.test_retrieval import history, recalled, told
from tests.proxy.test_retrieval import user as asks
from tests.scripted_upstream import Answer, Json, Received, ScriptedUpstream, Stall, rough_tokens

APPEND = {"X-Context-Mode": "append"}
Pair = tuple[Running, Running]
StartPair = Callable[..., Awaitable[Pair]]


def echo(call: Received) -> Answer:
    return Answer(f"re: {call.messages[-1]['content']}")


@pytest.fixture
async def pair(proxy: StartProxy, upstream: ScriptedUpstream, tmp_path: Path) -> StartPair:
    """`await pair(context={…})`: two proxies in front of `upstream`, which echoes, with one store."""
    upstream.script = echo

    async def start(**sections: Any) -> Pair:
        shared = {"store": {"url": "sqlite:///s.db"}, "data_dir": str(tmp_path / "shared"), **sections}
        return await proxy(upstream, **shared), await proxy(upstream, **shared)

    return start


async def settled(pair: Pair) -> None:
    for one in pair:
        await one.settled()


async def thin(running: Running, text: str, session: str = "s") -> Said:
    said = await running.chat(text, session=session, headers=APPEND)
    await running.settled()
    return said


def texts(call: Received) -> list[str]:
    return [str(message["content"]) for message in call.messages]


async def test_a_full_history_that_goes_to_and_fro_is_one_branch(pair: StartPair, upstream: ScriptedUpstream) -> None:
    both = await pair()
    said: list[dict[str, Any]] = []
    for n in range(6):
        said.append({"role": "user", "content": f"q{n}"})
        answer = await both[n % 2].chat(said, session="s", stream=n % 3 == 0)
        assert answer.body
        assert [m["content"] for m in upstream.calls[-1].messages] == [m["content"] for m in said]
        said.append(answer.message)
    await settled(both)
    for one in both:
        assert await one.branches("s") == [[f"{m['role']}: {m['content']}" for m in said]]


async def test_a_thin_client_finds_at_one_what_it_said_at_the_other(pair: StartPair, upstream: ScriptedUpstream) -> None:
    both = await pair()
    for n, letter in enumerate("abcdef"):
        await thin(both[n % 2], letter)
    assert texts(upstream.calls[-1]) == [text for letter in "abcde" for text in (letter, f"re: {letter}")] + ["f"]


async def test_two_thin_requests_at_once_are_both_kept_one_behind_the_other(pair: StartPair, upstream: ScriptedUpstream) -> None:
    both = await pair()
    await thin(both[0], "a")
    await asyncio.gather(*(one.chat(text, session="s", headers=APPEND) for one, text in zip(both, "bc", strict=True)))
    await settled(both)
    log = await both[0].log("s")
    assert log[:2] == ["user: a", "assistant: re: a"]
    assert sorted(log[2:]) == sorted(["user: b", "assistant: re: b", "user: c", "assistant: re: c"])


async def test_an_answer_that_others_were_always_quicker_than_is_in_the_log_and_counted(
    pair: StartPair, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "REBASES", 0)
    first, second = await pair()
    await thin(first, "a")
    gate = asyncio.Event()
    upstream.script = lambda call: Stall(gate, echo(call))
    late = asyncio.create_task(thin(first, "late"))
    await upstream.call(1)
    upstream.script = echo
    await thin(second, "b")
    gate.set()
    await late
    asked_a = ["user: a", "assistant: re: a"]
    assert await first.branches("s") == [[*asked_a, "user: late", "assistant: re: late"], [*asked_a, "user: b", "assistant: re: b"]]
    assert (await first.log("s"), (await first.session("s")).requests) == ([*asked_a, "user: b", "assistant: re: b"], 3)


async def test_an_edit_at_the_other_is_a_branch_and_a_retry_is_none(pair: StartPair) -> None:
    first, second = await pair()
    a, b = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
    one = await first.chat([a], session="s")
    await settled((first, second))
    for running in (first, second):  # the same request again
        await running.chat([a, one.message, b], session="s", headers={"X-Stainless-Retry-Count": "1"})
        await settled((first, second))
    await second.chat([a, one.message, {"role": "user", "content": "c"}], session="s")
    await settled((first, second))
    common = ["user: a", "assistant: re: a"]
    assert await first.branches("s") == [[*common, "user: c", "assistant: re: c"], [*common, "user: b", "assistant: re: b"]]


async def test_commands_and_pins_of_one_hold_at_the_other(pair: StartPair, upstream: ScriptedUpstream) -> None:
    first, second = await pair()
    for letter in "ab":
        await thin(first, letter)
    assert "max_tokens" in (await thin(second, "/config context.max_tokens 9000")).text
    assert (await thin(first, "c")).headers["X-Context-Budget"] == "9000"
    await asyncio.gather(*(one.chat(f"/pin keep {n}", session="s", headers=APPEND) for n in range(3) for one in (first, second)))
    pins = await second.state.store.pins((await second.session("s")).key)
    assert (sorted(pin.text for pin in pins), sorted(pin.number for pin in pins)) == (["keep 0", "keep 1", "keep 2"], [1, 2, 3])
    await thin(second, "/context clear")
    await thin(first, "d")
    sent = texts(upstream.calls[-1])
    assert sent[-1] == "d"
    assert not {"a", "b", "c"} & set(sent)
    assert all(pin.text in str(sent) for pin in pins)


async def test_what_one_has_compacted_the_other_sends_byte_for_byte(pair: StartPair, upstream: ScriptedUpstream) -> None:
    both = await pair(context={"max_tokens": 4000}, summarizer={"kind": "extractive"})
    said, before = talk(12), b""
    acted = 0
    for n in range(24):
        answer = await both[n % 2].chat(said, session="s")
        await settled(both)
        sent = array(upstream.calls[-1])
        if answer.actions.keys() <= {"replay"}:
            assert sent.startswith(before)
        else:
            acted += 1
        before = sent if answer.actions else b""
        said += [answer.message, {"role": "user", "content": f"question {n} " + "with some words " * 20}]
    assert 0 < acted < 8


async def test_one_summary_is_asked_for_whoever_gets_the_next_request(pair: StartPair, upstream: ScriptedUpstream) -> None:
    both = await pair(context=SUMMARIZING)
    going = asyncio.Event()
    upstream.script = lambda call: Stall(going, Answer(SUMMARY)) if is_summary(call) else Answer("an answer")
    said = talk(10)
    for n in range(8):
        answer = await both[n % 2].chat(said, session="s")
        for one in both:
            await asyncio.gather(*(task for task in one.state.tasks._running if task.get_name() == "settle"))
        said += [answer.message, {"role": "user", "content": f"and {n}? {FILLER[:200]}"}]
    assert len(upstream.calls) - len(asked(upstream)) == 1
    going.set()
    await settled(both)


async def test_a_window_that_one_has_learned_the_other_plans_with(pair: StartPair, upstream: ScriptedUpstream) -> None:
    first, second = await pair()
    upstream.script = lambda call: Json(400, TOO_LONG) if rough_tokens(call.json) > 4000 else Answer("fits")
    assert (await second.chat("hi")).headers["X-Context-Window"] == "128000 (default)"
    long = talk(40)
    assert (await first.chat(long, session="s")).headers["X-Context-Attempts"] != "1"
    await settled((first, second))
    second.state.windows._read_at = float("-inf")  # a second later
    said = await second.chat(talk(41), session="t")
    assert (said.headers["X-Context-Window"], said.headers["X-Context-Attempts"]) == ("4000 (learned)", "1")


async def test_an_older_belief_of_another_does_not_replace_a_newer_one_that_could_not_be_written(pair: StartPair) -> None:
    first, _ = await pair()
    book = first.state.windows
    await first.state.windows.listed("http://u", b'{"data": [{"id": "m", "max_model_len": 5000}]}')
    (kept,) = book._beliefs.values()
    book._beliefs["http://u", "m"] = replace(kept, window=7000, updated=kept.updated + 1)
    book._read_at = float("-inf")
    await book.refresh()
    assert book.belief("http://u", "m", ()).window == 7000


async def test_what_one_has_stored_and_not_indexed_the_other_indexes_when_it_searches(pair: StartPair, upstream: ScriptedUpstream) -> None:
    first, second = await pair(context={"max_tokens": 1200}, summarizer={"kind": "extractive"}, retrieval={"kind": "hybrid"})
    past = history(40)
    said = await second.chat([*past, asks("Behind which old building did the otter number i sleep?")], session="s")
    assert told(3) in recalled(upstream)
    first.state.index._begin = lambda: None  # type: ignore[method-assign]  # it ends before it has indexed what comes now
    past += [
        asks("Behind which old building did the otter number i sleep?"),
        said.message,
        asks("It rains."),
        {"role": "assistant", "content": "Oh."},
    ]
    await first.chat([*past, asks("Go on.")], session="s")
    await settled((first, second))
    past += [asks("Go on."), {"role": "assistant", "content": "re: Go on."}]
    await second.chat([*past, asks("And the lynx number i, behind which one did that sleep?")], session="s")
    await settled((first, second))
    key = (await second.session("s")).key
    assert {row.tip for row in (await second.state.store.log(key, 0, 100)).messages} == await second.state.store.chunks.indexed(key)


async def test_what_waits_at_one_is_not_noted_in_a_session_that_the_other_has_erased(pair: StartPair) -> None:
    first, second = await pair(retrieval={"kind": "hybrid"})
    with first.state.lull.request():  # so that nothing behind the answers is done yet
        await first.chat("My name is Zebulon and I live in Ulm.", session="s", headers=APPEND)
        await asyncio.sleep(0)
        assert (await second.admin("DELETE", "sessions/s"))[0] == 200
        await second.chat("Good morning.", session="s", headers=APPEND)
        await second.settled()
    first.state.lull._go.set()
    await settled((first, second))
    session = await second.session("s")
    assert "Zebulon" not in str(await second.state.store.facts.of(session.key))
    assert {text_of(read(row.raw)) for row in (await second.state.store.log(session.key, 0, 9)).messages} == {"Good morning.", "re: Good morning."}
    tips = await second.state.store.chunks.indexed(session.key)
    assert tips == {row.tip for row in (await second.state.store.log(session.key, 0, 9)).messages}


async def test_what_a_worker_notes_late_does_not_replace_what_was_said_since(pair: StartPair) -> None:
    first, second = await pair()
    with first.state.lull.request():
        await first.chat("My budget is 100 euros.", session="s", headers=APPEND)
        await asyncio.sleep(0)
        await thin(second, "My budget is 200 euros.")
    first.state.lull._go.set()
    await settled((first, second))
    held = await second.state.store.facts.of((await second.session("s")).key)
    assert [one.point.value for one in held if one.in_force and one.point.key == "budget"] == ["200 euros"]
    assert len([one for one in held if one.point.key == "budget"]) == 2


async def test_a_worker_counts_from_the_programs_start_and_only_the_first_sweeps(pair: StartPair, tmp_path: Path) -> None:
    first, _ = await pair(sessions={"restore_turns": 1})
    for letter in "ab":
        await thin(first, letter)
    for number, expected in ((0, {"retention", "distilling", "catching up"}), (1, {"catching up"})):
        seat = Seat(number, first.state.started, (), tmp_path, -1, lambda: None)
        async with wiring.running_state(first.holder.current, seat) as state:
            assert {task.get_name() for task in state.tasks._running} == expected
            session = await state.store.session((await first.session("s")).key)
            assert session is not None
            assert state.started < session.last_used  # no restart has cut this session
            assert await restore_for(state, first.holder.current(), first.holder.current().context, session) is None


async def test_a_name_is_claimed_by_one_at_a_time_and_leaves_no_file(tmp_path: Path) -> None:
    first, second = claims.Claims(tmp_path), claims.Claims(tmp_path)
    with first.tried("a") as mine, second.tried("a") as theirs, second.tried("b") as other:
        assert (mine, theirs, other) == (True, False, True)
        assert not first.is_free("a")
    assert first.is_free("a")
    assert list((tmp_path / "locks").iterdir()) == []


async def test_who_waits_for_a_name_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = claims.Claims(tmp_path), claims.Claims(tmp_path)
    monkeypatch.setattr(claims, "LOOK_AGAIN_S", 0.0)
    order: list[str] = []

    async def work(who: claims.Claims, name: str) -> None:
        async with who.held("a"):
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)

    await asyncio.gather(*(work(who, name) for who, name in ((first, "x"), (second, "y"), (first, "z"))))
    assert order[::2] == order[1::2]


async def test_where_no_lock_can_be_made_everybody_may(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file in the folder's place", encoding="utf-8")
    who = claims.Claims(tmp_path)
    with who.tried("a") as first, who.tried("a") as second:
        assert (first, second) == (True, True)
