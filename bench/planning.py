"""What planning a long session costs: CPU milliseconds per request, by preset; exit code 1 where it is more than the bar.

    python -m bench.planning [--messages 2000] [--share 3] [--presets adaptive,hybrid] [--kinds chat,agent] [--most-ms 50]

A conversation of the shared quality data comes in at nine tenths of its length and grows request by request to the whole, under a budget
of 1/share of its tokens; what was decided and summarized comes back with each request as from a store. The columns: the whole history as
the first request of a session with nothing read before (`cold`), and what is held against the bar, every text read before: the same again
(`first`), requests that replay what was decided, requests that compact, and the same where that was worked out ahead of them
(`foreseen`), as it is in the pauses of a session. Each plan is made five times and counts with the least: the rest is what else the machine
was doing. An agent's messages are five times as long as a chat's: their bar is for a session that goes on (`replays`, `foreseen`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ctxproxy.core.foresight import foresee
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
MOST_MS = 50.0
"""The bar of a median and of the first request."""
TRIES = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--share", type=int, default=3, help="the budget is the whole history's tokens divided by this")
    parser.add_argument("--presets", default=",".join(name for name in PRESETS if name != "off"))
    parser.add_argument("--kinds", default=",".join(SOURCES))
    parser.add_argument("--most-ms", type=float, default=MOST_MS)
    args = parser.parse_args()
    over: list[str] = []
    print("| history | preset | cold | first | replays p50 | replays max | compacts n | p50 | max | foreseen p50 | max | |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for kind in args.kinds.split(","):
        history = conversation(SOURCES[kind], args.messages)
        limit = sum(map(count, history)) // args.share
        for preset in args.presets.split(","):
            found = figures(history, preset, limit)
            slow = found.bar_ms(goes_on=kind == "agent") > args.most_ms
            over += [f"{preset} ({kind})"] if slow else []
            print(f"| {kind}, {len(history)} | {preset} | {found} | {'OVER' if slow else ''} |", flush=True)
    print(f"over {args.most_ms:g} ms: {', '.join(over)}" if over else f"none over {args.most_ms:g} ms")
    return 1 if over else 0


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
    tries: int = TRIES

    def equipped(self, situation: Situation) -> Situation:
        """The situation with what is remembered, and exact counts."""
        return replace(situation, memo=self.memo, count_text=self.count_text)

    def plan(self, situation: Situation) -> Plan:
        with_memo = self.equipped(situation)
        took: list[float] = []
        for _ in range(self.tries):
            began = time.process_time()
            made = plan(with_memo)
            took.append(time.process_time() - began)
        (self.replays if made.checkpoint is None else self.compacts).append(min(took))
        return made


@dataclass(frozen=True)
class Figures:
    """The columns of one preset, in milliseconds."""

    cold: float
    first: float
    replays: Sequence[float]
    compacts: Sequence[float]
    foreseen: Sequence[float]

    def bar_ms(self, *, goes_on: bool) -> float:
        """The largest of what the bar is for: all that is warm, or what a session meets that `goes_on`."""
        unforeseen = [] if goes_on else [self.first, *([statistics.median(self.compacts)] if self.compacts else [])]
        return max([*unforeseen, *(statistics.median(some) for some in (self.replays, self.foreseen) if some)])

    def __str__(self) -> str:
        pairs = [text for some in (self.replays, self.compacts, self.foreseen) for text in (_median(some), _most(some))]
        return " | ".join([f"{self.cold:.0f}", f"{self.first:.1f}", *pairs[:2], str(len(self.compacts)), *pairs[2:]])


def figures(history: Sequence[Message], preset: str, limit: int) -> Figures:
    """What one preset takes."""
    fresh, cold = Chain(Policy(preset=preset)).situation(history, limit), Timed(tries=1)
    cold.plan(fresh)
    first, grown = replace(cold, compacts=[], replays=[], tries=2 * TRIES), replace(cold, compacts=[], replays=[], tries=TRIES)
    first.plan(fresh)
    foreseen = replace(grown, compacts=[], replays=[])
    for timed, ahead in ((grown, None), (foreseen, lambda s: foresee(foreseen.equipped(s), plan))):
        chain = Chain(Policy(preset=preset), ahead=ahead)
        for end in request_ends(history):
            if end >= 0.9 * len(history):
                chain.ask(history[:end], limit, decide=timed.plan)
    later = foreseen.compacts[1:]  # nothing can be foreseen of the first, with which the session begins
    return Figures(_ms(cold)[0], _ms(first)[0], *([1000 * one for one in some] for some in (grown.replays, grown.compacts, later)))


def _ms(timed: Timed) -> list[float]:
    return [1000 * one for one in (*timed.compacts, *timed.replays)]


def _median(ms: Sequence[float]) -> str:
    return f"{statistics.median(ms):.1f}" if ms else "–"


def _most(ms: Sequence[float]) -> str:
    return f"{max(ms):.1f}" if ms else "–"


if __name__ == "__main__":
    sys.exit(main())
