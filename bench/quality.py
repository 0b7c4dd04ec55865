"""What compressed prompts keep: replays the shared conversations through the proxy and writes the tables of `docs/quality.md`.

    scripts/quality [--budgets r25,r12] [--presets adaptive,trim] [--styles full,thin] [--retrieval off,keyword]
                    [--jobs 2] [--scratch DIR] [--tables-only]

Each cell is a run of the shared harness with a fresh proxy on memory; finished cells stay in the scratch folder and are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ctxproxy.core.presets import PRESETS
from tests.shared_dir import SHARED

ROOT = Path(__file__).resolve().parent.parent
QUALITY = SHARED / "quality"
DOC = ROOT / "docs" / "quality.md"
BEGIN, END = "<!-- tables: made by scripts/quality -->", "<!-- end of tables -->"
BUDGETS = ("r25", "r12", "r06", "a4k", "a8k", "a16k")
TITLES = {"r25": "25 %", "r12": "12 %", "r06": "6 %", "a4k": "4,000 tokens", "a8k": "8,000 tokens", "a16k": "16,000 tokens"}
FAMILIES = ("memory_en", "memory_zh", "agent_tau", "agent_swe")
NOT_TRIED = frozenset({"lossless", "off"})
"""Presets that are not there to make everything fit."""
BASELINES = ("none", "window", "hyst_window", "middle_out", "lc_summarize", "cow_half_turns", "lc_clear_tools", "headroom", "bm25_ctx", "oracle")
CELL_S = 1800
SETTINGS = {
    "CTXPROXY_STORE__URL": "memory://",
    "CTXPROXY_SUMMARIZER__BACKGROUND": "false",
    "CTXPROXY_SUMMARIZER__MODEL": "summary-model",
}
"""As the harness's own instructions have it: summaries are waited for, so that a run can be repeated."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", default=",".join(BUDGETS))
    parser.add_argument("--presets", default=",".join(name for name in PRESETS if name not in NOT_TRIED))
    parser.add_argument("--styles", default="full,thin")
    parser.add_argument("--retrieval", default="off", help="kinds of retrieval, each a run of its own")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "ctxproxy-quality")
    parser.add_argument("--tables-only", action="store_true", help="write the tables from the cells that are there")
    args = parser.parse_args()
    kinds = args.retrieval.split(",")
    cells = [(budget, preset, kind) for budget in args.budgets.split(",") for preset in args.presets.split(",") for kind in kinds]
    if not args.tables_only:
        with ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(lambda cell: run_cell(args.scratch, *cell, args.styles), cells))
    write_tables(args.scratch)


def run_cell(scratch: Path, budget: str, preset: str, kind: str, styles: str) -> None:
    """Replay and score one budget under one preset with one kind of retrieval, unless that has been done."""
    out = scratch / f"{system(preset, kind)}.{budget}"
    if (out / "score.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    asked = {"CTXPROXY_CONTEXT__PRESET": preset, "CTXPROXY_RETRIEVAL__KIND": kind, "CTXPROXY_CONTEXT__MAX_TOKENS": "{budget}"}
    environ = {**SETTINGS, **asked, "CTXPROXY_DATA_DIR": "{out}/data"}
    proxy = ["env", *(f"{name}={value}" for name, value in environ.items()), sys.executable, "-m", "ctxproxy", "serve"]
    command = " ".join([*proxy, "--port", "{port}", "--upstream", "{upstream}"])
    _harness("replay.py", "--budget", budget, "--style", styles, "--thin-header", "X-Context-Mode: append", "--out", str(out), "--proxy-cmd", command)
    print(_harness("score.py", str(out)), flush=True)


def system(preset: str, kind: str) -> str:
    """The name of a row: the preset, and the kind of retrieval where there is one."""
    return preset if kind == "off" else f"{preset}+{kind}"


def _harness(program: str, *args: str) -> str:
    run = [sys.executable, str(QUALITY / "harness" / program), *args]
    return subprocess.run(run, cwd=ROOT, env=os.environ, check=True, capture_output=True, text=True, timeout=CELL_S).stdout  # noqa: S603  our own command line


def write_tables(scratch: Path) -> None:
    """Put a table for each budget with a finished cell into the document, between its marks."""
    before, _, rest = DOC.read_text(encoding="utf-8").partition(BEGIN)
    tables = "\n".join(line for budget in BUDGETS for line in table(scratch, budget))
    DOC.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def table(scratch: Path, budget: str) -> Iterator[str]:
    """The lines of one budget's table; nothing where no cell is finished."""
    cells = sorted(scratch.glob(f"*.{budget}/score.json"), key=lambda path: order_of(path.parent.name.rpartition(".")[0]))
    if not cells:
        return
    everything = cost_of_everything(scratch, budget)
    yield f"### {TITLES[budget]}\n"
    yield "| system | style | evidence recall | English chat | Chinese chat | service agents | coding agents | task | sent | prefix | cost | faults |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for cell in cells:
        for style, scored in json.loads(cell.read_text(encoding="utf-8"))["score"].items():
            yield row(f"**{cell.parent.name.rpartition('.')[0]}**", style.partition("/")[0], scored, everything)
    yield from baselines(budget)
    yield ""


def order_of(name: str) -> tuple[int, str]:
    """The presets in their own order, each first without retrieval."""
    preset, _, kind = name.partition("+")
    return list(PRESETS).index(preset), kind


def row(name: str, style: str, scored: dict[str, Any], everything: float) -> str:
    """One line: macro recall, its four families, what was kept, sent and paid, and the sum of all that must be 0."""
    summary, extra = scored["summary"], scored["extra"]
    recalls = [summary[family]["ev"] if family in summary else None for family in FAMILIES]
    known = [recall for recall in recalls if recall is not None]
    whole = summary["all"]
    faults = whole["over"] + whole["viol"] + whole["client_err"] + extra.get("overflow_upstream", 0)
    figures = [sum(known) / len(known), *recalls, whole["task"], whole["sent_share"], whole["prefix"], whole["cost"] / everything]
    return f"| {name} | {style} | " + " | ".join(_shown(figure) for figure in figures) + f" | {faults} |"


def _shown(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.3f}"


def cost_of_everything(scratch: Path, budget: str) -> float:
    """What sending everything costs (the harness's `none`)."""
    path = scratch / "base" / f"none.{budget}.dev.json"
    if not path.exists():
        _harness("run_baselines.py", "--systems", "none", "--budgets", budget, "--out", str(path.parent))
    return float(json.loads(path.read_text(encoding="utf-8"))["summary"]["all"]["cost"])


def baselines(budget: str) -> Iterator[str]:
    """The harness's own systems, from its table."""
    lines: Sequence[str] = (QUALITY / "baselines.md").read_text(encoding="utf-8").partition(f"budget {budget} ")[2].split("\n## ")[0].splitlines()
    rows = {cells[0]: cells for line in lines if line.startswith("| ") for cells in [[cell.strip(" *") for cell in line.strip("| ").split(" | ")]]}
    for name in BASELINES:
        if cells := rows.get(name):
            _, macro, *families, _ans, task, sent, prefix, cost, _aux, over, _viol = cells
            yield f"| {name} | full | " + " | ".join([macro, *families, task, sent, prefix, cost, over]) + " |"


if __name__ == "__main__":
    main()
