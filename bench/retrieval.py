"""How long it takes to find what a question needs among N pieces of one session, in the default store.

    python bench/retrieval.py [pieces] [questions]

Prints median and 95th percentile in milliseconds: of the store's look-up, of choosing (in memory, over what the look-up gave), of both; and what
indexing a piece costs the store's writer. The pieces are messages of the shared quality conversations, the questions theirs.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxproxy.core.chunks import Indexed
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.messages import ROOT, Message, chain, identity, make
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retrieval import Bounds, choose, chunks_at, query_of
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.transcript import Transcript
from ctxproxy.proxy.counting import Readings
from ctxproxy.store import open_store
from tests.core.chains import Chain
from tests.shared_dir import SHARED

KEY = SessionKey("0f" * 16, "long")
BOUNDS = Bounds(40, 2000, 0.0)


def conversations() -> Iterator[dict[str, Any]]:
    """The shared conversations, chats first."""
    for name in ("locomo", "zhmem", "zhkd", "bfclmem", "swe", "tau2", "tau1"):
        for line in (SHARED / "quality" / "data" / "dev" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def megabytes(folder: str) -> float:
    """What the files of a folder take."""
    return sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6


async def main(pieces: int, questions: int) -> None:
    """Print the table."""
    found = list(conversations())
    messages: list[Message] = []
    asked = [probe["question"] for one in found for probe in one["probes"] if probe.get("question")][:questions]
    memo, total = Readings(512 << 20), 0
    for fields in (fields for one in found for fields in one["messages"] if fields["role"] in ("user", "assistant")):
        messages.append(make({"role": fields["role"], "content": fields.get("content") or "…"}))
        total += len(chunks_at(messages[-1], "", memo))
        if total >= pieces:
            break
    tips = chain(ROOT, [identity(message) for message in messages])
    made = [
        Indexed(chunk, terms_of(chunk.text), 1, 1.0) for message, tip in zip(messages, tips, strict=True) for chunk in chunks_at(message, tip, memo)
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{folder}/bench.db", on_damage=print)
        await store.apply([OpenSession(KEY, 1.0)])
        began = time.perf_counter()
        for at in range(0, len(made), 64):
            await store.chunks.add(KEY, made[at : at + 64])
        indexing = (time.perf_counter() - began) / len(made)
        looking, choosing = [], []
        for question in asked:
            history = [*messages, make({"role": "user", "content": question})]
            situation = replace(Chain(Policy()).situation(history, 100_000), memo=memo)
            query = query_of(history)
            began = time.perf_counter()
            postings = await store.chunks.postings(KEY, list(query.terms))
            between = time.perf_counter()
            choose(situation, Transcript(()), query, postings, BOUNDS)
            looking.append(between - began)
            choosing.append(time.perf_counter() - between)
        size = megabytes(folder)
        await store.close()
    print(f"{len(made)} pieces of {len(messages)} messages, {len(asked)} questions; {indexing * 1e3:.2f} ms to index one; {size:.0f} MB on disk")
    for name, seconds in (("look-up", looking), ("choosing", choosing), ("both", [a + b for a, b in zip(looking, choosing, strict=True)])):
        print(f"{name:9} median {statistics.median(seconds) * 1e3:6.1f} ms   p95 {statistics.quantiles(seconds, n=20)[-1] * 1e3:6.1f} ms")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, int(sys.argv[2]) if len(sys.argv) > 2 else 100))
