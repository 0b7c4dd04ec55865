"""What the admin API changes: erasing, forgetting, pinning, forking; and the figures it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import APPEND, FILLER, OFF, TINY, got, question, turns
from tests.scripted_upstream import Answer, ScriptedUpstream, Window, tool_call

SQLITE = {"url": "sqlite:///s.db"}
SECRET_TEXT = "the quick zebra sleeps in Reykjavik"


def holding(folder: Path, text: str) -> list[str]:
    """The files in a folder in whose bytes a text stands."""
    return [file.name for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


async def stored_twice(running: Running, upstream: ScriptedUpstream) -> None:
    """Two sessions, one of which holds the secret text in a question, an answer and a summary."""
    upstream.script = Answer(f"I know that {SECRET_TEXT}.")
    await running.chat([*turns(12), question(f"Tell me: {SECRET_TEXT}? {FILLER}")], session="secret")
    upstream.script = Answer("ok")
    await running.chat("something else", session="other")
    await running.settled()


async def test_erasing_a_session_leaves_nothing_of_it_in_the_files(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE, context=TINY, summarizer={"kind": "extractive"})
    await stored_twice(running, upstream)
    await got(running, "sessions/secret/pins", "POST", {"text": f"pinned: {SECRET_TEXT}"}, status=201)
    folder = Path(running.holder.current().data_dir)
    assert holding(folder, "zebra")
    assert (await got(running, "sessions/secret", "DELETE"))["deleted"]
    assert holding(folder, "zebra") == []
    assert holding(folder, "secret") == []
    await got(running, "sessions/secret", status=404)
    assert [one["name"] for one in (await got(running, "sessions"))["data"]] == ["other"]
    await running.restart()
    assert await running.log("other") == ["user: something else", "assistant: ok"]


async def test_after_erasing_the_same_name_starts_anew(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("one", session="s", headers=APPEND)
    await running.settled()
    await got(running, "sessions/s", "DELETE")
    await running.chat("two", session="s", headers=APPEND)
    assert upstream.calls[-1].messages == [question("two")]


@pytest.mark.parametrize("erase", [False, True])
async def test_a_forgotten_message_is_never_sent_again(proxy: StartProxy, upstream: ScriptedUpstream, *, erase: bool) -> None:
    running = await proxy(upstream, store=SQLITE)
    for text in ("one", f"two: {SECRET_TEXT}", "three"):
        await running.chat(text, session="s", headers=APPEND)
    await running.settled()
    row = (await got(running, "sessions/s/messages"))["data"][2]
    answer = await got(running, f"sessions/s/messages/{row['tip']}?erase={str(erase).lower()}", "DELETE")
    assert answer == {"tip": row["tip"], "deleted": True, "erased": erase, "pins_dropped": []}
    assert bool(holding(Path(running.holder.current().data_dir), "zebra")) is not erase
    for text in ("four", "five"):
        await running.chat(text, session="s", headers=APPEND)
        assert "zebra" not in str(upstream.calls[-1].messages)
        await running.restart()
    sent = [m["content"] for m in upstream.calls[-1].messages if not m["content"].startswith("[")]  # but for our own note of it
    assert sent == ["one", "ok", "ok", "three", "ok", "four", "ok", "five"]
    rows = (await got(running, "sessions/s/messages"))["data"]
    assert rows[2]["state"] == "dropped"
    assert (rows[2]["message"] is None) is erase
    assert (await running.admin("GET", f"expand/{row['tip']}"))[0] == (404 if erase else 200)


async def test_what_a_full_client_resends_stays_forgotten(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    history = [question("one"), {"role": "assistant", "content": "ok"}, question(f"two: {SECRET_TEXT}"), {"role": "assistant", "content": "ok"}]
    await running.chat([*history, question("three")], session="s")
    await running.settled()
    tip = (await got(running, "sessions/s/messages"))["data"][2]["tip"]
    await got(running, f"sessions/s/messages/{tip}", "DELETE")
    await running.chat([*history, question("three"), {"role": "assistant", "content": "ok"}, question("four")], session="s")
    assert "zebra" not in str(upstream.calls[-1].messages)


async def test_forgetting_one_of_a_call_and_its_result_leaves_a_valid_array(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    upstream.script = Window(100_000)
    work = [
        question("look"),
        {"role": "assistant", "content": None, "tool_calls": [tool_call("c1", "ls", {})]},
        {"role": "tool", "tool_call_id": "c1", "content": SECRET_TEXT},
        {"role": "assistant", "content": "seen"},
    ]
    await running.chat([*work, question("and?")], session="s")
    await running.settled()
    tip = (await got(running, "sessions/s/messages"))["data"][2]["tip"]
    await got(running, f"sessions/s/messages/{tip}", "DELETE")
    said = await running.chat([*work, question("and?"), {"role": "assistant", "content": "ok"}, question("more?")], session="s")
    assert said.status == 200
    assert "zebra" not in str(upstream.calls[-1].messages)


async def test_a_tip_that_is_not_there_is_told(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("one", session="s")
    await running.settled()
    for tip in ("0" * 32, "nonsense"):
        await got(running, f"sessions/s/messages/{tip}", "DELETE", status=404)


async def test_a_pinned_text_is_in_the_prompt_after_compaction(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=TINY, summarizer={"kind": "extractive"})
    await running.chat("hello", session="s", headers=APPEND)
    await running.settled()
    assert await got(running, "sessions/s/pins", "POST", {"text": f"  Never forget: {SECRET_TEXT}  "}, status=201) == {
        "n": 1,
        "text": f"Never forget: {SECRET_TEXT}",
    }
    upstream.script = Answer(f"an answer: {FILLER}")
    acted: set[str] = set()
    for turn in range(25):
        acted |= (await running.chat(f"question {turn}: {FILLER}", session="s", headers=APPEND)).actions.keys()
    assert "summarize" in acted
    assert f"Never forget: {SECRET_TEXT}" in str(upstream.calls[-1].messages)


async def test_a_pin_outlives_the_hardest_rung(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, summarizer=OFF)
    await running.chat([*turns(20), question()], session="s")
    await running.settled()
    await got(running, "sessions/s/pins", "POST", {"text": SECRET_TEXT}, status=201)
    upstream.script = Window(400)
    said = await running.chat([*turns(20), question(), {"role": "assistant", "content": "ok"}, question("next?")], session="s")
    assert said.status == 200
    assert SECRET_TEXT in str(upstream.calls[-1].messages)


async def test_pins_are_numbered_and_let_go(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("one", session="s")
    await running.settled()
    for text in ("a", "b"):
        await got(running, "sessions/s/pins", "POST", {"text": text}, status=201)
    assert await got(running, "sessions/s/pins/1", "DELETE") == {"n": 1, "deleted": True}
    assert [pin["text"] for pin in (await got(running, "sessions/s"))["pins"]] == ["b"]
    await got(running, "sessions/s/pins/1", "DELETE", status=404)
    for wrong in ({}, {"text": ""}, {"text": "  "}, {"text": 7}):
        await got(running, "sessions/s/pins", "POST", wrong, status=400)


async def test_a_fork_goes_its_own_way(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for text in ("one", "two"):
        await running.chat(text, session="s", headers=APPEND)
    await running.settled()
    whole = await got(running, "sessions/s/fork", "POST", status=201)
    rows = (await got(running, "sessions/s/messages"))["data"]
    early = await got(running, "sessions/s/fork", "POST", {"tip": rows[1]["tip"], "id": "early"}, status=201)
    assert (early["name"], early["tip"]) == ("early", rows[1]["tip"])
    await running.chat("forked", session=whole["name"], headers=APPEND)
    await running.chat("early", session="early", headers=APPEND)
    await running.chat("three", session="s", headers=APPEND)
    sent = [[m["content"] for m in call.messages] for call in upstream.calls[-3:]]
    assert sent == [["one", "ok", "two", "ok", "forked"], ["one", "ok", "early"], ["one", "ok", "two", "ok", "three"]]
    await got(running, "sessions/s/fork", "POST", {"id": "early"}, status=409)
    await got(running, "sessions/s/fork", "POST", {"tip": "0" * 32}, status=404)
    await got(running, "sessions/s/fork", "POST", {"id": "no blanks please"}, status=400)


async def test_models_tell_where_each_window_comes_from(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, models=[{"match": "mine*", "window": 9000}], summarizer=OFF)
    upstream.script = Window(4000)
    await running.chat(turns(40))
    rows = {row["model"]: (row["window"], row["source"]) for row in (await got(running, "models"))["data"]}
    assert (rows["mine*"], rows["tested-model"]) == ((9000, "config"), (4000, "learned"))


async def test_stats_name_what_was_saved(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=TINY, summarizer=OFF)
    said = await running.chat([*turns(20), question()], session="s")
    await running.settled()
    stats: dict[str, Any] = await got(running, "stats")
    sent, came = int(said.headers["X-Context-Tokens-Sent"]), int(said.headers["X-Context-Tokens-In"])
    assert (stats["sessions"], stats["requests"], stats["messages"], stats["compactions"]) == (1, 1, 42, 1)
    assert (stats["tokens_in"], stats["tokens_sent"], stats["tokens_saved"]) == (came, sent, came - sent)
    assert stats["saved_of_tokens_in"] == pytest.approx((came - sent) / came, abs=1e-4)
