"""Profiles by session name, and A/B arms, over HTTP: who gets which policy, what is counted for it."""

from __future__ import annotations

from typing import Any

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.scripted_upstream import Answer, Cut, Json, Overflow, ScriptedUpstream

FILLER = "some words that say little " * 30
OFF = {"kind": "off"}
ONE_ARM = {"name": "e", "arms": [{"profile": "small", "share": 100}]}
SMALL = {"small": {"max_tokens": 2000, "keep_recent_turns": 1}}


def talk(turns: int) -> list[dict[str, Any]]:
    said = [{"role": role, "content": f"{role} {n}: {FILLER}"} for n in range(turns) for role in ("user", "assistant")]
    return [*said, {"role": "user", "content": "last question?"}]


async def arm_figures(running: Running) -> list[dict[str, Any]]:
    status, stats = await running.admin("GET", "stats")
    assert status == 200
    return list(stats["experiment"]["arms"])


async def scraped(running: Running) -> str:
    async with running.http.get(f"{running.url}/metrics") as answer:
        return await answer.text()


async def test_a_session_of_an_arm_has_its_policy_and_its_figures(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, summarizer=OFF, profiles=SMALL, experiment=ONE_ARM)
    said = await running.chat(talk(20), session="s")
    assert (said.headers["X-Context-Arm"], said.headers["X-Context-Budget"]) == ("small", "2000")
    sizes = [int(said.headers[f"X-Context-Tokens-{name}"]) for name in ("In", "Sent")]
    (arm,) = await arm_figures(running)
    assert arm == {
        "arm": "small",
        "share": 100.0,
        "requests": 1,
        "failed": 0,
        "failed_of_requests": 0.0,
        "tokens_in": sizes[0],
        "tokens_sent": sizes[1],
        "saved_of_tokens_in": round((sizes[0] - sizes[1]) / sizes[0], 4),
        "compactions": 1,
        "compactions_of_requests": 1.0,
        "overflows": 0,
        "rescued": 0,
        "rescued_of_overflows": 0.0,
    }
    metrics = await scraped(running)
    assert 'ctxproxy_arm_requests_total{arm="small",outcome="answered"} 1.0' in metrics
    assert f'ctxproxy_arm_tokens_sent_total{{arm="small"}} {float(sizes[1])}' in metrics


async def test_overflows_refusals_and_broken_calls_are_counted_for_the_arm(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, summarizer=OFF, experiment={"arms": [{"profile": "lossless", "share": 100}]})
    upstream.script = [Overflow(4000, requested=9000), Answer("fits"), Json(401, {"error": {"message": "no"}})]
    said = [await running.chat(talk(20), session="a"), await running.chat("hi", session="b")]
    upstream.script = Cut(b"")
    said.append(await running.chat("hi", session="c"))
    assert [one.status for one in said] == [200, 401, 502]
    (arm,) = await arm_figures(running)
    assert [arm[name] for name in ("requests", "failed", "overflows", "rescued", "rescued_of_overflows")] == [3, 2, 1, 1, 1.0]
    assert 'ctxproxy_arm_overflows_total{arm="lossless",result="rescued"} 1.0' in await scraped(running)


async def test_a_named_preset_wins_over_the_arm_and_is_not_counted_for_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, profiles=SMALL, experiment=ONE_ARM)
    said = await running.chat("hi", session="s", headers={"X-Context-Preset": "off"})
    assert "X-Context-Arm" not in said.headers
    assert [arm["requests"] for arm in await arm_figures(running)] == [0]


async def test_a_request_without_a_session_has_no_arm(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, profiles=SMALL, experiment=ONE_ARM, sessions={"derive": False})
    said = await running.chat("hi")
    assert "X-Context-Arm" not in said.headers
    assert said.headers["X-Context-Budget"] != "2000"


async def test_a_session_keeps_its_arm_and_two_arms_share_the_sessions(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    arms = [{"profile": "adaptive", "share": 50}, {"profile": "lossless", "share": 50}]
    running = await proxy(upstream, experiment={"name": "halves", "arms": arms})
    drawn = [{(await running.chat("hi", session=f"s{n}")).headers["X-Context-Arm"] for _ in range(2)} for n in range(16)]
    assert all(len(arms) == 1 for arms in drawn)
    assert set().union(*drawn) == {"adaptive", "lossless"}
    assert sum(arm["requests"] for arm in await arm_figures(running)) == 32


async def test_the_admin_view_of_a_session_plans_with_its_arm(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, summarizer=OFF, profiles=SMALL, experiment=ONE_ARM)
    await running.chat(talk(2), session="s")
    await running.settled()
    _, view = await running.admin("GET", "sessions/s/view")
    assert view["budget"]["prompt"] == 2000


async def test_a_session_whose_name_matches_gets_its_profile(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    sessions = {"profiles": [{"match": "cron-*", "profile": "small"}]}
    running = await proxy(upstream, profiles=SMALL, sessions=sessions, experiment={"arms": [{"profile": "lossless", "share": 100}]})
    cron, other = await running.chat("hi", session="cron-1"), await running.chat("hi", session="chat-1")
    assert (cron.headers["X-Context-Budget"], "X-Context-Arm" in cron.headers) == ("2000", False)
    assert (other.headers["X-Context-Budget"] != "2000", other.headers["X-Context-Arm"]) == (True, "lossless")


async def test_without_an_experiment_there_are_no_arms(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    assert "X-Context-Arm" not in (await running.chat("hi", session="s")).headers
    assert await arm_figures(running) == []


async def test_a_preset_named_by_a_request_brings_its_budget_unless_one_was_set(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    named = {"X-Context-Preset": "cowagent"}
    free, bound = await proxy(upstream), await proxy(upstream, context={"max_tokens": 8000})
    budgets = [(await running.chat("hi", session="s", headers=named)).headers["X-Context-Budget"] for running in (free, bound)]
    assert budgets == ["50000", "8000"]
