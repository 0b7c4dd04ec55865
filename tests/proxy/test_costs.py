"""What requests and summaries cost: kept with the session, summed up, shown, and counted for a monitor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running, path_of
from tests.scripted_upstream import Answer, Json, Received, ScriptedUpstream, completion

FILLER = "some words that say little " * 24
LINE = "Nothing is open, and nothing was decided."


def talk(turns: int) -> list[dict[str, Any]]:
    said = [{"role": role, "content": f"{n}: {FILLER}"} for n in range(turns) for role in ("user", "assistant")]
    return [*said, {"role": "user", "content": "last question?"}]


def counter(running: Running, name: str, **labels: str) -> float:
    return running.state.metrics.registry.get_sample_value(f"ctxproxy_{name}_total", labels) or 0.0


def reported(call: Received, cached: dict[str, Any]) -> Json:
    return Json(200, completion("ok", usage={"prompt_tokens": 1000, "completion_tokens": 5, "total_tokens": 1005, **cached}))


async def test_a_second_request_pays_a_tenth_for_what_the_first_had(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat(talk(3)[:-2], session="s")
    first = (await running.session("s")).spent
    assert first.cost_all == first.cost_sent > 0
    assert first.cached_expected == 0
    await running.chat(talk(3), session="s")
    session = await running.session("s")
    assert session.spent.cached_expected == first.cost_sent
    assert session.spent.cost_sent == pytest.approx(session.tokens_sent - 0.9 * session.spent.cached_expected)


@pytest.mark.parametrize(
    ("cached", "told"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 640}}, 640),
        ({"prompt_cache_hit_tokens": 512, "prompt_cache_miss_tokens": 488}, 512),
        ({"prompt_tokens_details": None}, 0),
    ],
)
async def test_what_the_upstream_reports_stands_beside_what_we_expect(
    proxy: StartProxy, upstream: ScriptedUpstream, cached: dict[str, Any], told: int
) -> None:
    running = await proxy(upstream)
    upstream.script = lambda call: reported(call, cached)
    await running.chat("hi", session="s")
    await running.settled()
    _, stats = await running.admin("GET", "stats")
    assert (stats["requests_with_reported_usage"], stats["prompt_reported"], stats["cached_reported"]) == (1, 1000, told)
    assert stats["cost_reported"] == pytest.approx(1000 - 0.9 * told)
    assert counter(running, "tokens_reported") == 1000
    assert counter(running, "tokens_cached", source="reported") == told


async def test_a_compaction_saves_and_what_its_summary_cost_is_taken_off(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 4000, "pipeline": [{"stage": "summarize"}, {"stage": "drop_oldest"}]})
    answers = {True: Json(200, completion(LINE, usage={"prompt_tokens": 3000, "completion_tokens": 100})), False: Answer("ok")}
    upstream.script = lambda call: answers[call.header("X-Purpose") == "summary"]
    for turns in (30, 31, 32, 33):
        await running.chat(talk(turns), session="s")
        await running.settled()
    session = await running.session("s")
    calls = sum(call.header("X-Purpose") == "summary" for call in upstream.calls)
    assert calls > 0
    assert session.spent.cost_summaries == 3400 * calls
    assert session.spent.cost_sent < session.spent.cost_all
    _, stats = await running.admin("GET", "stats")
    _, shown = await running.admin("GET", path_of("s"))
    net = session.spent.cost_all - session.spent.cost_sent - session.spent.cost_summaries
    for figures in (stats, shown):
        assert figures["net_saved"] == pytest.approx(net, abs=0.1)
        assert figures["cost_if_all_sent"] == pytest.approx(session.spent.cost_all, abs=0.1)
        assert figures["cached_expected"] == session.spent.cached_expected
    costs = {of: counter(running, "cost", of=of) for of in ("all", "sent", "summaries")}
    spent = session.spent
    assert costs == pytest.approx({"all": spent.cost_all, "sent": spent.cost_sent, "summaries": spent.cost_summaries})


async def test_a_refused_request_costs_nothing(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    upstream.script = Json(500, {"error": {"message": "no"}, "usage": {"prompt_tokens": 5}})
    await running.chat("hi", session="s")
    session = await running.session("s")
    assert session.requests == 1
    assert session.spent == replace(session.spent, cost_all=0, cost_sent=0, reported_requests=0)
    assert counter(running, "cost", of="sent") == 0


async def test_a_request_without_a_session_is_counted_by_the_monitor_alone(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, sessions={"derive": False})
    await running.chat("hi")
    await running.settled()
    assert counter(running, "cost", of="sent") > 0
    assert (await running.state.store.totals()).sessions == 0


async def test_a_fault_in_finding_the_cost_does_not_cost_the_request_its_place_in_the_log(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("ctxproxy.proxy.keeping.spent_on", fails)
    running = await proxy(upstream)
    await running.chat("hi", session="s")
    assert await running.log("s") == ["user: hi", "assistant: ok"]
    assert (await running.session("s")).spent.cost_sent == 0


async def test_costs_outlive_a_restart(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store={"url": "sqlite:///costs.db"})
    await running.chat(talk(3)[:-2], session="s")
    before = (await running.session("s")).spent
    await running.restart()
    await running.chat(talk(3), session="s")
    after = (await running.session("s")).spent
    assert after.cost_sent > before.cost_sent > 0
    assert after.cached_expected > 0, "what the request before the restart had is cached still"


@pytest.mark.parametrize(("idle_s", "is_cached"), [(299.0, True), (301.0, False)])
async def test_after_a_long_silence_nothing_is_taken_for_cached(
    proxy: StartProxy, upstream: ScriptedUpstream, *, idle_s: float, is_cached: bool
) -> None:
    running, now = await proxy(upstream), [1_000_000.0]
    running.state.clock = lambda: now[0]
    await running.chat(talk(3)[:-2], session="s")
    await running.settled()
    now[0] += idle_s
    await running.chat(talk(3), session="s")
    assert ((await running.session("s")).spent.cached_expected > 0) is is_cached
