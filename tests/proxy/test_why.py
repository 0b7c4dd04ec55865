"""`GET sessions/{id}/why` and the call that it gives, on a running proxy."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from ctxproxy.proxy import tracing
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.scripted_upstream import Json, ScriptedUpstream

DROPPING = {"max_tokens": 2000, "keep_recent_turns": 1, "pipeline": [{"stage": "drop_oldest"}]}
FILLER = "some words that say little " * 30
SENTENCE = "The launch code of the probe is 7741-Q."


def question(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def talk(number: int) -> list[dict[str, Any]]:
    said = [question("begin"), {"role": "assistant", "content": f"{SENTENCE} {FILLER}"}]
    return [*said, *({"role": role, "content": f"{role} {n}: {FILLER}"} for n in range(number) for role in ("user", "assistant"))]


async def why(running: Running, text: str, more: str = "", *, status: int = 200) -> Any:
    answered, value = await running.admin("GET", f"sessions/s/why?text={quote(text)}{more}")
    assert answered == status, value
    return value


async def test_it_tells_what_took_a_phrase_out_and_one_call_brings_it_back(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING, summarizer={"kind": "off"})
    asked = [*talk(12), question("last?")]
    await running.chat(asked, session="s")
    await running.settled()
    assert SENTENCE not in str(upstream.calls[-1].messages)
    told = await why(running, "LAUNCH  code")
    (one,) = told["data"]
    assert (told["searched"], told["in_prompt"], told["left_off"]) == (len(asked) + 1, [], 0)
    assert (one["state"], one["stage"], one["role"], one["turn"], one["place"]) == ("dropped", "drop_oldest", "assistant", 1, "content")
    assert one["left"] == one["steps"][0]
    assert (one["left"]["turn"], one["left"]["stage"]) == (14, "drop_oldest")
    assert one["left"]["time"] >= one["time"] - 1
    assert (await running.admin("GET", f"expand/{one['marker']}"))[1].decode() == f"{SENTENCE} {FILLER}"
    assert told["pin"]["body"] == {"text": SENTENCE}
    assert (await running.admin(told["pin"]["method"], told["pin"]["path"], told["pin"]["body"]))[0] == 201
    said = await running.chat([*asked, {"role": "assistant", "content": "ok"}, question("and now?")], session="s")
    assert said.actions == {"pins": 1}
    assert SENTENCE in str(upstream.calls[-1].messages)
    await running.settled()
    after = await why(running, SENTENCE)
    assert (after["in_prompt"], after["pins"], after["pin"]) == ([0], [1], None)


async def test_every_branch_is_searched_and_arguments_too(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": '{"path": "\\u65e5\\u8bb0.md"}'}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    branch = [question("one"), calling, {"role": "tool", "tool_call_id": "c1", "content": "done"}]
    await running.chat(branch, session="s")
    await running.settled()
    await running.chat([question("one"), {"role": "assistant", "content": "no"}, question("is it in 日记.md?")], session="s")
    await running.settled()
    told = await why(running, "日记.md")
    assert [(one["role"], one["place"], one["state"]) for one in told["data"]] == [
        ("assistant", "tool_calls[0].function.arguments.path", "sent"),
        ("user", "content", "sent"),
    ]
    assert len({one["branch"] for one in told["data"]}) == 2
    assert (await why(running, "日记.md", "&limit=1"))["left_off"] == 1
    assert (await why(running, "ONE"))["data"][0]["branches"] == 2


async def test_only_so_many_branches_are_planned(proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MOST_BRANCHES", 2)
    monkeypatch.setattr(tracing, "PAGE_MESSAGES", 2)
    running = await proxy(upstream)
    for n in range(4):
        await running.chat(f"the needle {n}", session="s", headers={"X-Context-Mode": "full"})
        await running.settled()
    told = await why(running, "needle")
    assert (told["searched"], len(told["data"]), told["left_off"]) == (8, 2, 2)


async def test_a_session_without_an_answer_is_searched_too(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    upstream.script = Json(500, {"error": {"message": "no"}})
    await running.chat("the needle", session="s")
    await running.settled()
    assert [one["state"] for one in (await why(running, "needle"))["data"]] == ["sent"]


@pytest.mark.parametrize("text", ["", "  ", "x" * 500])
async def test_a_text_that_nothing_can_be_looked_for_with_is_told(proxy: StartProxy, upstream: ScriptedUpstream, text: str) -> None:
    running = await proxy(upstream)
    await running.chat("one", session="s")
    await running.settled()
    error = (await why(running, text, status=400))["error"]
    assert (error["param"], error["code"]) == ("text", "invalid_value")
    assert "name of a file" in error["message"]
