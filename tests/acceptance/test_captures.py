"""What 25 real clients send, replayed through the proxy: nothing of it is changed, and each client's turns are seen to be one conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.captures import Capture, answer_to, clients, messages_said, threads
from tests.proxy.running import Running
from tests.scripted_upstream import Json, Reply, ScriptedUpstream
from tests.scripted_upstream import Received as Call
from tests.shared_dir import shared

NAMES = """aider autogen cline codex-responses continue-cn gptme instructor langchain-js langchain-openai litellm llamaindex mini-swe-agent
open-webui openai-agents openai-agents-js openai-node openai-python opencode pi pydantic-ai qwen-code simonw-llm smolagents vercel-ai-openai
vercel-ai-sdk""".split()  # noqa: SIM905  a list would take 27 lines
THREE_TURNS = ("autogen", "continue-cn", "gptme", "openai-agents", "opencode", "pi", "pydantic-ai", "smolagents")
"""The clients that held a conversation of three requests, read off the recordings."""
SESSION_HEADERS = {"open-webui": "X-OpenWebUI-Chat-Id"}
"""What `sessions.header` has to be for clients that name their session in a header of their own."""
SESSION = "recorded"


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream(models=None) as running:
        yield running


@pytest.fixture
async def proxy(upstream: ScriptedUpstream, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    header = SESSION_HEADERS.get(request.node.callspec.params["client"], "X-Session-Id")
    keys = {"listen": {"port": 0}, "upstream": {"base_url": upstream.url}, "data_dir": str(tmp_path / "data"), "sessions": {"header": header}}
    running = await Running(keys, tmp_path).start()
    yield running
    await running.stop()


def recorded(client: str) -> list[Capture]:
    return clients(shared("captures"))[client]


def session_header(client: str) -> str:
    return SESSION_HEADERS.get(client, "X-Session-Id")


async def replay(client: str, turns: list[Capture], proxy: Running, upstream: ScriptedUpstream) -> list[tuple[Capture, Call]]:
    """Send a client's requests in order; gives each with what arrived of it at the upstream."""
    arrived = []
    for turn in turns:
        reply: Reply = answer_to(turn, turns) if turn.is_chat else Json(200, {"object": "list", "data": []})
        upstream.script = lambda _, reply=reply: reply
        headers = turn.headers(session_header(client), SESSION)
        async with proxy.http.request(turn.method, proxy.url + turn.path, data=turn.raw or None, headers=headers) as answer:
            assert answer.status == 200
            await answer.read()
        await proxy.settled()
        arrived.append((turn, upstream.calls[-1]))
    return arrived


def test_every_recorded_client_is_replayed() -> None:
    assert sorted(clients(shared("captures"))) == NAMES


@pytest.mark.parametrize("client", NAMES)
async def test_a_request_arrives_as_the_client_sent_it(client: str, proxy: Running, upstream: ScriptedUpstream) -> None:
    own = session_header(client).lower()
    for turn, call in await replay(client, recorded(client), proxy, upstream):
        assert call.body == turn.raw, turn.number
        assert (call.method, call.path) == (turn.method, turn.path)
        sent = [(name, value) for name, value in turn.headers(own, SESSION).items() if name.lower() != own]
        assert [pair for pair in call.headers if pair in sent] == sent, turn.number
        assert call.header(own) is None
    assert len(upstream.calls) == len(recorded(client))


@pytest.mark.parametrize("client", NAMES)
async def test_the_turns_of_a_conversation_are_one_branch_that_holds_each_message_once(
    client: str, proxy: Running, upstream: ScriptedUpstream
) -> None:
    turns = [turn for turn in recorded(client) if turn.is_chat]
    await replay(client, turns, proxy, upstream)
    by_session: dict[bool, list[Capture]] = {}
    for turn in turns:
        by_session.setdefault(turn.names_a_session(session_header(client)), []).append(turn)
    page = await proxy.state.store.sessions(100, None, "")
    kept: dict[bool, int] = {True: 0, False: 0}
    leaves: dict[bool, int] = {True: 0, False: 0}
    for session in page.sessions:
        kept[session.key.name == SESSION] += session.messages
        leaves[session.key.name == SESSION] += len(await proxy.state.store.leaves(session.key))
    for named, own in by_session.items():
        conversations = list(threads(own))
        assert leaves[named] == len(conversations), [[turn.number for turn in one] for one in conversations]
        assert kept[named] == messages_said(conversations)
    assert client not in THREE_TURNS or 3 in {len(one) for own in by_session.values() for one in threads(own)}
