"""`GET sessions/{id}/doctor`: the three questions of 003-30 about a running session."""

from __future__ import annotations

from tests.proxy.conftest import StartProxy
from tests.proxy.test_admin import APPEND, got, turns
from tests.scripted_upstream import Json, ScriptedUpstream


async def test_003_30_a_sound_session_a_cleared_one_and_one_whose_store_fails_are_told_apart(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat(turns(3)[:-1], session="s")
    await running.settled()
    sound = await got(running, "sessions/s/doctor")
    assert sound["ok"]
    assert [finding["ok"] for finding in sound["findings"]] == [True] * 3
    running.state.health.failed("the disk is full")
    failing = await got(running, "sessions/s/doctor")
    assert not failing["ok"]
    assert "the disk is full" in failing["findings"][1]["why"]


async def test_003_30_a_session_without_a_whole_answer_is_found_empty(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    upstream.script = Json(401, {"error": {"message": "no such key"}})
    await running.chat("hi", session="s", headers=APPEND)
    await running.settled()
    assert [finding["ok"] for finding in (await got(running, "sessions/s/doctor"))["findings"]] == [False, True, True]


async def test_003_30_a_compaction_that_leaves_nothing_behind_is_found(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 2000, "pipeline": [{"stage": "drop_oldest"}]})
    await running.chat([*turns(12), {"role": "user", "content": "and?"}], session="s")
    await running.settled()
    (fault,) = (finding for finding in (await got(running, "sessions/s/doctor"))["findings"] if not finding["ok"])
    assert "nothing that stands for them" in fault["why"]
