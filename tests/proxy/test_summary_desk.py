"""What has to be summarized for a request, and what becomes of a summary that is there before its session is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.effects import OpenSession
from ctxproxy.core.policy import Policy, SummarizerPolicy
from ctxproxy.core.records import SessionKey, Summary
from ctxproxy.core.summaries import Need
from ctxproxy.proxy import summary_desk
from ctxproxy.proxy.claims import Claims
from ctxproxy.proxy.counting import Readings
from ctxproxy.proxy.fact_desk import FactDesk
from ctxproxy.proxy.index_desk import IndexDesk
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.own_summarizer import Own
from ctxproxy.proxy.summary_desk import Asked, SummaryDesk, need_of
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.store.memory import MemoryStore
from ctxproxy.tokenizers import open_tokenizer
from tests.contract.samples import KEY
from tests.core.chains import Chain
from tests.core.histories import count, talk

HISTORY = talk(10)
WIDE = 128_000


def needed(told: int, *, window: int = WIDE, policy: Policy = Policy(), kind: Any = "llm") -> Need:  # noqa: B008  a frozen value
    """What is needed up to the 20th message where a summary tells the first `told`."""
    situation = Chain(policy).situation(HISTORY, 10_000)
    tips = situation.reconciled.tips
    ready = Summary(tips[told - 1], "told", kind, "m", told, 1, 0, 0, 0)
    return need_of(replace(situation, summaries=[ready]), tips[19], SummarizerPolicy(), window)


@pytest.mark.parametrize("told", [4, 12, 19])
def test_an_earlier_summary_is_carried_on_by_what_came_after_it(told: int) -> None:
    again = told < 16  # 16 to 63 messages are one step of growth
    need = needed(told)
    assert (need.previous is None) is again
    assert need.messages == tuple(HISTORY[0 if again else told : 20])


def test_of_a_history_too_long_to_read_again_an_earlier_summary_stands_for_the_beginning() -> None:
    fits = -(-sum(map(count, HISTORY[:20])) // 3)
    assert needed(4, window=fits).previous is None
    need = needed(4, window=fits - 1)
    assert need.previous is not None
    assert need.messages == tuple(HISTORY[4:20])


def test_a_running_summary_is_only_ever_carried_on() -> None:
    need = needed(4, policy=Policy(preset="layered"))
    assert need.previous is not None
    assert need.messages == tuple(HISTORY[4:20])


def test_what_no_model_wrote_is_not_carried_on() -> None:
    need = needed(19, kind="extractive")
    assert need.previous is None
    assert need.messages == tuple(HISTORY[:20])


WORDS = open_tokenizer("o200k_base")
TOLD = "The user asked a row of small questions about words; every one was answered and nothing is open."


class Desk:
    """A desk over an empty store, and a summarizer that waits for its gate."""

    def __init__(self, folder: Path) -> None:
        self.store, self.tasks, self.asked, self.begun, self.gate = MemoryStore(), Tasks(), list[object](), asyncio.Event(), asyncio.Event()
        self.gate.set()
        lull, metrics = Lull(), Metrics()
        index = IndexDesk(self.store, metrics, self.tasks, lull, lambda: True, lambda _: None)
        facts = FactDesk(self.store, Readings(1_000_000), metrics, self.tasks, lull)
        self.desk = SummaryDesk(self.store, lambda _: pytest.fail("no upstream is asked"), metrics, self.tasks, facts, index, Claims(folder))

    async def summarize(self, request: object) -> str:
        self.asked.append(request)
        self.begun.set()
        await self.gate.wait()
        return TOLD

    async def write(self, key: SessionKey = KEY, told: int = 4) -> Summary | None:
        own = Own("own:summarize", self.summarize)
        return await self.desk.write(key, needed(told), Asked("", "m", [], WIDE, WORDS, 60.0, own))

    async def kept(self) -> list[Summary]:
        """What the store has of the session, which it has from now on."""
        await self.store.apply([OpenSession(KEY, 1.0)])
        self.desk.opened(KEY)
        await self.tasks.close(60.0)
        return await self.store.summaries(KEY, None)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    await made.tasks.close(60.0)


async def test_a_summary_of_a_session_that_is_not_stored_yet_is_kept_when_it_is(desk: Desk) -> None:
    assert await desk.write() == await desk.write()
    assert len(desk.asked) == 1
    assert [one.text for one in await desk.kept()] == [TOLD]
    assert await desk.write()
    assert len(desk.asked) == 1


async def test_a_session_that_is_stored_while_its_summary_is_looked_for_gets_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    session = desk.store.session

    async def too_early(key: SessionKey) -> Any:
        found = await session(key)
        await desk.store.apply([OpenSession(KEY, 1.0)])
        return found

    monkeypatch.setattr(desk.store, "session", too_early)
    await desk.write()
    await desk.tasks.close(60.0)
    assert len(await desk.store.summaries(KEY, None)) == 1


@pytest.mark.parametrize("erase", [True, False])
async def test_what_is_erased_or_forgotten_is_not_kept_later(desk: Desk, *, erase: bool) -> None:
    made = await desk.write()
    assert made is not None
    await (desk.desk.erase([KEY]) if erase else desk.desk.forget(KEY, [made.tip]))
    assert await desk.kept() == []


@pytest.mark.parametrize("erase", [True, False])
async def test_what_is_erased_or_forgotten_while_it_is_summarized_is_not_kept(desk: Desk, *, erase: bool) -> None:
    desk.gate.clear()
    writing = asyncio.create_task(desk.write())
    await desk.begun.wait()
    await (desk.desk.erase([KEY]) if erase else desk.desk.forget(KEY, [needed(4).tip]))
    desk.gate.set()
    assert await writing is not None
    assert await desk.kept() == []
    assert desk.desk._void == set()


async def test_of_few_new_sessions_summaries_wait(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_desk, "EARLY_SESSIONS", 1)
    await desk.write()
    await desk.write(KEY._replace(name="another"))
    assert await desk.kept() == []
