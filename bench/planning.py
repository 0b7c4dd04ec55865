"""What planning a long session costs: CPU milliseconds per request, by preset.

    python -m bench.planning [--messages 2000] [--share 3] [--presets adaptive,hybrid] [--kinds chat,agent]

A conversation of the shared quality data comes in at nine tenths of its length and grows request by request to the whole, under a budget
of 1/share of its tokens; what was decided and summarized comes back with each request as from a store. The columns: requests that replay
what was decided, requests that compact, and the whole history as the first request of a session (`first`: nothing decided, but every text
read before; `cold`: nothing read either).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ctxproxy.core.messages import Message, make
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.situation import Situation
from ctxproxy.proxy.counting import Readings
from ctxproxy.tokenizers import open_tokenizer
from tests.core.chains import Chain, request_ends
from tests.core.histories import count
from tests.shared_dir import SHARED

SOURCES = {"chat": "locomo", "agent": "swe"}
READINGS_BYTES = 1 << 28


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--share", type=int, default=3, help="the budget is the whole history's tokens divided by this")
    parser.add_argument("--presets", default=",".join(name for name in PRESETS if name != "off"))
    parser.add_argument("--kinds", default=",".join(SOURCES))
    args = parser.parse_args()
    print("| history | preset | replays p50 | replays max | compacts n | compacts p50 | compacts max | first | cold |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in args.kinds.split(","):
        history = conversation(SOURCES[kind], args.messages)
        limit = sum(map(count, history)) // args.share
        for preset in args.presets.split(","):
            print(f"| {kind}, {len(history)} | {preset} | " + " | ".join(figures(history, preset, limit)) + " |", flush=True)


def conversation(source: str, messages: int) -> list[Message]:
    """So many messages in a row, up to one that asks for an answer."""
    lines = (SHARED / "quality" / "data" / "dev" / f"{source}.jsonl").read_text(encoding="utf-8").splitlines()
    told = [make(m) for line in lines for m in json.loads(line)["messages"] if m["role"] != "system"][:messages]
    while told[-1].role == "assistant":
        told.pop()
    return told


@dataclass
class Timed:
    """Plans, and what each took in CPU seconds: those that made a decision and those that replayed one."""

    count_text: Callable[[str], int] = field(default_factory=lambda: open_tokenizer("o200k_base").count)
    memo: Readings = field(default_factory=lambda: Readings(READINGS_BYTES))
    compacts: list[float] = field(default_factory=list)
    replays: list[float] = field(default_factory=list)

    def plan(self, situation: Situation) -> Plan:
        with_memo = replace(situation, memo=self.memo, count_text=self.count_text)
        began = time.process_time()
        made = plan(with_memo)
        took = time.process_time() - began
        (self.replays if made.checkpoint is None else self.compacts).append(took)
        return made


def figures(history: Sequence[Message], preset: str, limit: int) -> list[str]:
    """The columns of one preset."""
    chain, timed = Chain(Policy(preset=preset)), Timed()
    ends = [end for end in request_ends(history) if end >= 0.9 * len(history)]
    for end in ends:
        chain.ask(history[:end], limit, decide=timed.plan)
    whole, fresh = Timed(), Chain(Policy(preset=preset)).situation(history, limit)
    for _ in range(5):
        whole.plan(fresh)
    cold, *first = whole.compacts or whole.replays
    grown = [_ms(timed.replays, "median"), _ms(timed.replays, "max"), str(len(timed.compacts))]
    return [*grown, _ms(timed.compacts, "median"), _ms(timed.compacts, "max"), _ms(first, "median"), _ms([cold], "max")]


def _ms(seconds: Sequence[float], how: str) -> str:
    if not seconds:
        return "–"
    return f"{1000 * (max(seconds) if how == 'max' else statistics.median(seconds)):.1f}"


if __name__ == "__main__":
    main()
