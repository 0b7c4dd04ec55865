"""How long it takes to find what a question needs among N pieces of one session, in the default store.

    python -m bench.retrieval [pieces] [questions]

Prints median and 95th percentile of the processor's time, in milliseconds, for `keyword`, `dense` and `hybrid`: the store's look-up of words, the
vectors compared (with that of the question), choosing; what indexing a piece and making its vector cost. Without the extra
`semantic` it measures `keyword` alone. The pieces are messages of the shared quality conversations, the questions theirs.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ctxproxy.core.chunks import Indexed
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.fusion import NOT_COMPARED, Nearness
from ctxproxy.core.messages import ROOT, Message, chain, identity, make
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retrieval import Bounds, choose, chunks_at, query_of, sense_of
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.transcript import Transcript
from ctxproxy.embedders.open import open_embedder
from ctxproxy.errors import ConfigError
from ctxproxy.ports import Store, Upstream
from ctxproxy.ports.embedding import Access, Embedder
from ctxproxy.proxy.counting import Readings
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.proxy.vector_desk import VectorDesk
from ctxproxy.store import open_store
from tests.core.chains import Chain
from tests.shared_dir import SHARED

TRIES = 3
"""Of each question, whose best counts: a machine that does other things, too, slows the others down."""
KEY = SessionKey("0f" * 16, "long")
BOUNDS = Bounds(40, 2000, 0.0)


def conversations() -> Iterator[dict[str, Any]]:
    """The shared conversations, English ones first: those have vectors."""
    for name in ("locomo", "bfclmem", "swe", "tau2", "tau1", "zhmem", "zhkd"):
        for line in (SHARED / "quality" / "data" / "dev" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def megabytes(folder: str) -> float:
    """What the files of a folder take."""
    return sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6


def no_upstream(_: str) -> Upstream:
    """None is asked here."""
    raise NotImplementedError


def own_embedder() -> Embedder | None:
    """The one that needs no upstream, if the extra is installed."""
    try:
        return open_embedder("wordllama", "", no_upstream)
    except ConfigError as error:
        print(f"keyword alone: {error.message}")
        return None


def gathered(pieces: int, memo: Readings) -> tuple[list[Message], list[Indexed]]:
    """Messages with about so many pieces in all, and these."""
    messages: list[Message] = []
    total = 0
    for fields in (
        fields for one in conversations() for fields in one["messages"] if fields["role"] in ("user", "assistant") and fields.get("content")
    ):
        messages.append(make({"role": fields["role"], "content": fields["content"]}))
        total += len(chunks_at(messages[-1], "", memo))
        if total >= pieces:
            break
    tips = chain(ROOT, [identity(message) for message in messages])
    pairs = zip(messages, tips, strict=True)
    return messages, [Indexed(chunk, terms_of(chunk.text), 1, 1.0) for message, tip in pairs for chunk in chunks_at(message, tip, memo)]


@dataclass
class Search:
    """Searches one history, and takes the time of it."""

    store: Store
    desk: VectorDesk
    messages: list[Message]
    memo: Readings

    async def cost(self, question: str, kind: str) -> float:
        """Seconds of the processor's time for one question."""
        history = [*self.messages, make({"role": "user", "content": question})]
        situation = replace(Chain(Policy()).situation(history, 100_000), memo=self.memo)
        began = time.process_time()
        query, near = query_of(history), NOT_COMPARED
        postings = await self.store.chunks.postings(KEY, list(query.terms))
        if kind != "keyword":
            near = Nearness(await self.desk.nearest(KEY, sense_of(history), Access("")), kind == "dense")
        choose(situation, Transcript(()), query, postings, BOUNDS, near)
        return time.process_time() - began


async def main(pieces: int, questions: int) -> None:
    """Print the table."""
    memo, tasks, embedder = Readings(512 << 20), Tasks(), own_embedder()
    messages, made = gathered(pieces, memo)
    asked = [probe["question"] for one in conversations() for probe in one["probes"] if probe.get("question")][:questions]
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{folder}/bench.db", on_damage=print)
        await store.apply([OpenSession(KEY, 1.0)])
        began = time.process_time()
        for at in range(0, len(made), 64):
            await store.chunks.add(KEY, made[at : at + 64])
        indexing = (time.process_time() - began) / len(made)
        print(f"{len(made)} pieces of {len(messages)} messages, {len(asked)} asked; {indexing * 1e3:.2f} ms to index one, {megabytes(folder):.0f} MB")
        desk = VectorDesk(store, Metrics(), tasks, Lull(), embedder, 1 << 30, lambda: True)
        if embedder:
            began = time.process_time()
            desk.begin(KEY)
            await tasks.close(600.0)
            making = (time.process_time() - began) / len(made)
            kept = await store.chunks.vectors(KEY, embedder.name, 0, len(made))
            print(f"{len(kept)} vectors, {making * 1e3:.2f} ms to make and keep a vector")
        search = Search(store, desk, messages, memo)
        for kind in ("keyword", "dense", "hybrid") if embedder else ("keyword",):
            await search.cost(asked[0], kind)  # the table of vectors is read at the first question
            seconds = [min([await search.cost(question, kind) for _ in range(TRIES)]) for question in asked]
            print(f"{kind:9} median {statistics.median(seconds) * 1e3:6.1f} ms   p95 {statistics.quantiles(seconds, n=20)[-1] * 1e3:6.1f} ms")
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, int(sys.argv[2]) if len(sys.argv) > 2 else 100))
