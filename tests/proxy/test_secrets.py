"""Promise 9: no credential is written to disk, to a log, to a metric, to an error or to an admin answer."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.proxy import logs
from tests.proxy.conftest import StartProxy
from tests.proxy.running import CHAT, Running
from tests.proxy.test_recovery import TOO_LONG, talk
from tests.scripted_upstream import Answer, Cut, Garbage, Json, Overflow, ScriptedUpstream

KEYS = {
    "Authorization": "Bearer sk-client-7f3a9c1e5b",
    "api-key": "azure-51c0ffee7788",
    "x-api-key": "anthropic-90d1e2f3a4b5",
    "x-goog-api-key": "AIzaSyGoogle1234567",
    "Cookie": "session=cookie-secret-314159",
    "Proxy-Authorization": "Basic cHJveHk6c2VjcmV0",
}
CONFIGURED = {
    "upstream": "sk-upstream-configured-42",
    "summarizer": "sk-summarizer-configured-43",
    "admin": "admin-token-configured-44",
    "route": "sk-route-configured-45",
}
SECRETS = [value.split(" ")[-1].split("=")[-1] for value in KEYS.values()] + list(CONFIGURED.values()) + ["query-secret-271828"]


def told(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def on_disk(folder: Path) -> list[tuple[str, str]]:
    """Which file holds which secret; the configuration itself is the user's own."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [(file.name, secret) for file in files for secret in SECRETS if secret.encode() in file.read_bytes()]


@pytest.fixture(params=["text", "json"])
def log_text(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """The program's own log at its most talkative; a function that gives all that was written so far."""
    written = io.StringIO()
    root, ours = logging.getLogger(), logging.getLogger("ctxproxy")
    before, levels = list(root.handlers), (root.level, ours.level)
    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", written)
        root.handlers.clear()
        logs.set_up("debug", request.param)
    yield written.getvalue
    root.handlers[:] = before
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


async def started(proxy: StartProxy, upstream: ScriptedUpstream, **sections: Any) -> Running:
    settings = {"api_key": CONFIGURED["upstream"], "routes": [{"match": "routed*", "api_key": CONFIGURED["route"]}], "first_byte_timeout_s": 1}
    keys = {"store": {"url": "sqlite:///s.db"}, "log": {"level": "debug"}, "admin": {"token": CONFIGURED["admin"]}, "context": {"max_tokens": 3000}}
    summarizer = {"api_key": CONFIGURED["summarizer"], "background": False, "timeout_s": 2}
    return await proxy(upstream, upstream=settings, summarizer=summarizer, **{**keys, **sections})


async def live_through_everything(running: Running, upstream: ScriptedUpstream) -> list[str]:
    """Answers, refusals, rescues, faults, summaries, wrong calls; gives the text of all that the proxy itself said to the client."""
    echoed = {"error": {"message": f"Incorrect API key provided: {KEYS['Authorization']}", "code": "invalid_api_key"}}
    scripts: list[Any] = [
        Answer("ok"),
        Json(401, echoed),
        Json(400, TOO_LONG),
        Overflow(100, 5000),
        Cut(),
        Garbage(b"SSH-2.0\r\n"),
        Garbage(f"HTTP/1.1 200 OK\r\nX-Echo: {KEYS['Authorization']}\r\nContent-Length: nope\r\n\r\n".encode()),
        Garbage(f"HTTP/1.1 200 OK\r\nContent-Length: {KEYS['Authorization']}\r\n\r\n".encode()),
        Garbage(f"HTTP/1.1 200 OK\r\n{KEYS['x-goog-api-key']} {KEYS['Authorization']}\r\n\r\n".encode()),
        Garbage(f"{KEYS['x-api-key']} {KEYS['Authorization']}\r\n\r\n".encode()),
    ]
    own: list[str] = []
    for script in scripts:
        upstream.script = script
        for headers in (KEYS, {}):
            for stream in (True, False):
                said = await running.send(body(stream=stream), {**headers, "X-Session-Id": "s"}, f"{CHAT}?key=query-secret-271828")
                if said.status in (502, 504):
                    own.append(said.body.decode())
    wrong = [await running.send(b"{}", {**KEYS, "X-Session-Id": "no blank"}), await running.send(b"?", {**KEYS, "Content-Encoding": "rot13"})]
    own += [one.body.decode() for one in wrong if one.status in (400, 415)]
    own += [str((await running.admin("GET", "stats", headers=KEYS))[1])]
    upstream.script = Answer("ok")
    await running.send(body(stream=False, model="routed-1"), {"X-Session-Id": "s2"})
    await running.settled()
    return own


def body(*, stream: bool, model: str = "m") -> bytes:
    return json.dumps({"model": model, "stream": stream, "messages": talk(30)}).encode()


async def test_no_credential_is_told_or_kept(proxy: StartProxy, upstream: ScriptedUpstream, log_text: Callable[[], str]) -> None:
    running = await started(proxy, upstream)
    own = await live_through_everything(running, upstream)
    assert len(own) >= 8
    assert told("".join(own)) == []
    with_token = {"Authorization": f"Bearer {CONFIGURED['admin']}"}
    for path in ("sessions", "sessions/s2", "sessions/s2/messages", "sessions/s2/view", "models", "stats"):
        status, answer = await running.admin("GET", path, headers=with_token)
        assert (status, told(json.dumps(answer))) == (200, [])
    async with running.http.get(f"{running.url}/metrics") as answer:
        assert told(await answer.text()) == []
    assert on_disk(Path(running.holder.current().data_dir)) == []
    logging.getLogger("ctxproxy").info("what comes after the requests' lines")
    written = log_text()
    assert "POST /v1/chat/completions" in written
    assert told(written) == []


async def test_every_credential_still_reaches_the_upstream_it_is_meant_for(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await started(proxy, upstream)
    await running.send(body(stream=False), {**KEYS, "X-Session-Id": "a"})
    meant = {name: value for name, value in KEYS.items() if name != "Proxy-Authorization"}
    assert {name: upstream.calls[-1].header(name) for name in meant} == meant
    assert upstream.calls[-1].header("Proxy-Authorization") is None
    await running.send(body(stream=False), {"X-Session-Id": "b"})
    assert upstream.calls[-1].header("Authorization") == f"Bearer {CONFIGURED['upstream']}"
    await running.send(body(stream=False, model="routed-1"), {"X-Session-Id": "c"})
    assert upstream.calls[-1].header("Authorization") == f"Bearer {CONFIGURED['route']}"


async def test_a_configured_key_goes_to_no_other_origin(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    async with ScriptedUpstream(Answer("other")) as other:
        routes = [{"match": "other*", "base_url": other.url}]
        running = await proxy(upstream, upstream={"api_key": CONFIGURED["upstream"], "routes": routes})
        assert (await running.send(b'{"model":"other-1","messages":[{"role":"user","content":"hi"}]}')).text == "other"
        assert other.calls[0].header("Authorization") is None


async def test_a_session_cannot_be_found_from_its_key_alone(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running, twin = await proxy(upstream), await proxy(upstream)
    for one in (running, twin):
        await one.chat("hi", session="s", key="sk-the-same-key")
    assert (await running.session("s")).key.tenant != (await twin.session("s")).key.tenant
    key_file = Path(running.holder.current().data_dir) / "tenant.key"
    assert key_file.stat().st_mode & 0o777 == 0o600
