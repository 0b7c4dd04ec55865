"""What has to be summarized for a request, and what becomes of a summary that is there before its session is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.effects import AppendMessages, Forget, OpenSession
from ctxproxy.core.policy import Policy, SummarizerPolicy
from ctxproxy.core.records import Summary
from ctxproxy.core.sessions import to_store
from ctxproxy.core.summaries import Need
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
STORED = Chain(Policy()).situation(HISTORY, 10_000).reconciled
OPENING = OpenSession(KEY, 1.0, recall=True, user="ann")


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

    async def write(self, opening: OpenSession | None = OPENING, *, erased: bool = False) -> Summary | None:
        own = Own("own:summarize", self.summarize)
        return await self.desk.write(KEY, needed(4), Asked("", "m", [], WIDE, WORDS, 60.0, own, opening=opening, is_erased=lambda: erased))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    await made.tasks.close(60.0)


async def test_a_summary_of_a_session_that_is_not_stored_yet_is_kept_with_it_at_once_and_asked_for_once(desk: Desk) -> None:
    assert await desk.write() == await desk.write()
    session = await desk.store.session(KEY)
    assert session
    assert (session.user, session.recall, session.messages) == ("ann", True, 0)
    assert [one.text for one in await desk.store.summaries(KEY, None)] == [TOLD]
    assert len(desk.asked) == 1


async def test_a_session_that_is_stored_when_its_summary_is_there_is_not_touched(desk: Desk) -> None:
    await desk.store.apply([OpenSession(KEY, 9.0, user="bob")])
    await desk.write()
    session = await desk.store.session(KEY)
    assert session
    assert (session.user, session.last_used) == ("bob", 9.0)
    assert len(await desk.store.summaries(KEY, None)) == 1


@pytest.mark.parametrize(("opening", "erased"), [(None, False), (OPENING, True)])
async def test_of_a_session_that_was_erased_nothing_is_kept(desk: Desk, opening: OpenSession | None, *, erased: bool) -> None:
    assert await desk.write(opening, erased=erased) is not None
    assert await desk.store.session(KEY) is None
    await desk.store.apply([OpenSession(KEY, 2.0)])  # it is begun anew
    await desk.write(opening, erased=True)
    assert await desk.store.summaries(KEY, None) == []


async def test_what_is_forgotten_while_it_is_summarized_is_not_kept(desk: Desk) -> None:
    await desk.store.apply([OpenSession(KEY, 1.0), AppendMessages(KEY, to_store(STORED, [1] * len(HISTORY), 1.0))])
    desk.gate.clear()
    writing = asyncio.create_task(desk.write())
    await desk.begun.wait()
    await desk.store.apply([Forget(KEY, STORED.tips[3])])
    desk.gate.set()
    assert await writing is not None
    assert await desk.store.summaries(KEY, None) == []
