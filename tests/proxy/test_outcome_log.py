"""What answers quote of their prompts is counted, where that is wanted, and never at an answer's expense."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.core.learned_priorities import NEWEST, Cell, Tally, as_line, read_lines
from ctxproxy.proxy import outcome_log
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_retrieval import user
from tests.scripted_upstream import Answer, ScriptedUpstream

ON = {"memory": {"outcomes": True}}
PAST = [user("Build a boat."), {"role": "assistant", "content": "The ticket for the boat is ORD-48213."}]
PAST += [message for n in range(NEWEST) for message in (user(f"part {n}"), {"role": "assistant", "content": f"done {n}"})]
QUESTION = user("Which ticket was it?")


def data_dir(running: Running) -> Path:
    return Path(running.holder.current().data_dir)


def logged(folder: Path, name: str = "outcomes.jsonl") -> bytes:
    file = folder / name
    return file.read_bytes() if file.exists() else b""


async def test_001_80_what_an_answer_quotes_is_counted_by_features_without_any_text(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **ON)
    upstream.script = [Answer("It was ORD-48213."), Answer("It was ORD-48213.")]
    for stream in (False, True):
        await running.chat([*PAST, QUESTION], session="s", stream=stream)
        await running.settled()
    line = logged(data_dir(running))
    assert b"ORD" not in line
    found = read_lines(line.splitlines())
    assert found[Cell("assistant", "", False, 0)] == Tally(2, 2)
    assert sum(tally.quoted for tally in found.values()) == 2
    assert (data_dir(running) / "outcomes.jsonl").stat().st_mode & 0o777 == 0o600


async def test_without_being_asked_for_and_of_a_short_prompt_nothing_is_counted(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat([*PAST, QUESTION], session="s")
    await running.restart(**ON)
    await running.chat([QUESTION], session="t")
    await running.chat([{"role": "system", "content": "Say something."}], session="u")
    await running.settled()
    assert logged(data_dir(running)) == b""


async def test_a_log_that_is_full_takes_the_place_of_the_older_one(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream, **ON)
    monkeypatch.setattr(outcome_log, "MOST_BYTES", 10)
    before = as_line({Cell("result", "", False, 0): Tally(7, 1)})
    (data_dir(running) / "outcomes.jsonl").write_bytes(before)
    await running.chat([*PAST, QUESTION], session="s")
    await running.settled()
    assert logged(data_dir(running), "outcomes.1.jsonl") == before
    assert read_lines([logged(data_dir(running))])


async def test_a_disk_that_takes_nothing_is_told_and_changes_no_answer(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, **ON)
    (data_dir(running) / "outcomes.jsonl").mkdir()
    said = await running.chat([*PAST, QUESTION], session="s")
    await running.settled()
    assert said.status == 200
    assert "outcomes could not be logged: Is a directory" in caplog.text
