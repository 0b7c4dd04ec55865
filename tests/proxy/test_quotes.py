"""What an answer made use of counts for more when it is looked for again (003-50)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxproxy.errors import StoreUnavailable
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_retrieval import DAY_S, ON, history, recalled, user
from tests.scripted_upstream import Answer, ScriptedUpstream

GATES = [user(f"The {colour} garden gate of the house in {town} opens with the code {code}.") for colour, town, code in (
    ("green", "Lima", "7731"), ("white", "Oslo", "4482"),
)]  # fmt: skip
ALL_RIGHT = {"role": "assistant", "content": "All right."}
PAST = [*history(5), GATES[0], ALL_RIGHT, *history(8)[10:], GATES[1], ALL_RIGHT, *history(50)]
DROPPING = {"context": {"max_tokens": 1200, "pipeline": [{"stage": "drop_oldest"}]}}


async def quoted(running: Running, session: str) -> dict[str, int]:
    """How often each piece about a garden gate was quoted, by its code."""
    (found,) = await running.state.store.find(session)
    postings = await running.state.store.chunks.postings(found.key, ["gate"])
    pieces = await running.state.store.chunks.texts(found.key, list(postings.quoted))
    return {piece.chunk.text.rpartition(" ")[2].strip("."): times for piece, times in zip(pieces, postings.quoted.values(), strict=True)}


async def test_003_50_a_recalled_piece_that_the_answer_quotes_comes_first_the_next_time(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **{**DROPPING, "retrieval": {"kind": "keyword", "top_k": 1}})
    question = user("Which code opens the garden gate?")
    await running.chat([*PAST, question], session="s")
    await running.settled()
    assert GATES[0]["content"] in recalled(upstream)
    assert await quoted(running, "s") == {}
    upstream.script = [Answer("That one opens with 4482."), Answer("Which gate?")]
    await running.chat([*PAST, user("Which code opens the white garden gate in Oslo?")], session="s")
    await running.settled()
    assert await quoted(running, "s") == {"4482": 1}
    await running.chat([*PAST, user("Tell me which code opens the garden gate?")], session="s")
    assert GATES[1]["content"] in recalled(upstream)


async def test_what_is_quoted_of_another_session_is_noted_there_and_a_store_that_is_gone_loses_no_answer(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream, memory={"preload": {"sessions": 0, "chunks": 0}}, **ON)
    ann = {"X-User-Id": "ann"}
    now = running.state.clock()
    running.state.clock = lambda: now - DAY_S
    await running.chat([GATES[0]], session="old", headers=ann)
    await running.settled()
    running.state.clock = lambda: now
    question = [user("Which code opens the green garden gate in Lima?")]
    upstream.script = [Answer("It opens with 7731."), Answer("It opens with 7731.")]
    await running.chat(question, session="new", headers=ann)
    await running.settled()
    assert await quoted(running, "old") == {"7731": 1}

    async def broken(*_: Any) -> Any:
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(running.state.store.chunks, "note_quoted", broken)
    said = await running.chat(question, session="newer", headers=ann)
    await running.settled()
    assert said.status == 200
    assert "7731" in recalled(upstream)
