"""The module and the configuration of docs/custom-parts.md, run as they stand there, and what happens when such parts are wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctxproxy.cli.main import main
from ctxproxy.config.load import load
from ctxproxy.config.reload import Holder, Refused, Reloaded
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.errors import ConfigError
from tests.proxy.conftest import StartProxy, proxy, upstream  # noqa: F401  the fixtures
from tests.scripted_upstream import ScriptedUpstream, tool_call

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "custom-parts.md"


def told(kind: str) -> str:
    """The one block of this kind in the document."""
    (block,) = re.findall(rf"```{kind}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    return str(block)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, empty; modules, stages and `sys.path` are afterwards as they were."""
    monkeypatch.chdir(tmp_path)
    path, modules, stages = list(sys.path), set(sys.modules), dict(REGISTRY)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    REGISTRY.clear()
    REGISTRY.update(stages)


def history(turns: int) -> list[dict[str, Any]]:
    """Turns with a call, a result of many TRACE lines and a long answer, then a question."""
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        lines = "\n".join([f"TRACE step {k} of run {n}" for k in range(30)] + [f"run {n} ended with code {n}"])
        messages += [
            {"role": "user", "content": f"Please run number {n} and tell me what came of it."},
            {"role": "assistant", "content": None, "tool_calls": [tool_call(f"c{n}", "run", {"number": n})]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": lines},
            {"role": "assistant", "content": f"Run {n} ended.\n" + f"It took its time, as number {n} mostly does. " * 20},
        ]
    return [*messages, {"role": "user", "content": "And now?"}]


async def test_the_example_of_the_documents_runs(folder: Path, proxy: StartProxy, upstream: ScriptedUpstream) -> None:  # noqa: F811
    (folder / "my_parts.py").write_text(told("python"), encoding="utf-8")
    keys = yaml.safe_load(told("yaml"))
    context = {**keys["context"], "max_tokens": 3000, "keep_recent_turns": 2}
    running = await proxy(upstream, context=context, summarizer={**keys["summarizer"], "background": False})
    said = await running.chat(history(8), session="s")
    assert said.text == "ok"
    assert {"my_parts:DropLines", "my_parts:FirstLines"} <= said.actions.keys()
    assert "TRACE step" not in str(upstream.calls[-1].json["messages"][2])
    (shortened, *_) = (m["content"] for m in upstream.calls[-1].json["messages"] if "has the marker" in str(m.get("content")))
    marker = re.findall(r"marker ([0-9a-f]{16})", shortened)[0]
    status, original = await running.admin("GET", f"expand/{marker}")
    assert (status, original.decode().count("as number")) == (200, 20)
    said = await running.chat(history(40), session="s")
    assert "summarize" in said.actions
    first = upstream.calls[-1].json["messages"][0]["content"]
    assert "Our own summary" in first
    assert "assistant: Run 0 ended." in first
    await running.settled()
    _, shown = await running.admin("GET", "sessions/s")
    (summary,) = shown["summaries"]
    assert (summary["model"], summary["kind"]) == ("my_parts:summarize", "llm")
    assert summary["messages"] > 0
    assert len(upstream.calls) == 2


@pytest.mark.parametrize(
    ("module", "behaves"),
    [
        ("def summarize(request): raise KeyError('secret words')", "KeyError at line 1 of summarize"),
        ("def summarize(request): raise SystemExit", "SystemExit at line 1 of summarize"),
        ("async def summarize(request): raise ValueError", "ValueError at line 1 of summarize"),
        ("import asyncio\nasync def summarize(request): raise asyncio.CancelledError", "CancelledError at line 2 of summarize"),
        ("def summarize(request): return 7", "empty"),
        ("def summarize(request): return ' '.join(f'word{n}' for n in range(20_000))", "no smaller than what it covers"),
        ("import time\ndef summarize(request): time.sleep(5)", "longer than summarizer.timeout_s"),
        ("import asyncio\nasync def summarize(request): await asyncio.Event().wait()", "longer than summarizer.timeout_s"),
        ("def summarize(): return 'no argument'", "TypeError"),
    ],
    ids=["error", "exit", "async-error", "cancelled", "no-text", "too-long", "slow", "async-slow", "signature"],
)
async def test_a_summarizer_that_fails_breaks_no_request_and_the_extract_stands_in(
    module: str,
    behaves: str,
    folder: Path,
    proxy: StartProxy,  # noqa: F811
    upstream: ScriptedUpstream,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    (folder / "failing_parts.py").write_text(module, encoding="utf-8")
    own = {"kind": "failing_parts:summarize", "background": False, "timeout_s": 1}
    running = await proxy(upstream, context={"max_tokens": 2000, "pipeline": [{"stage": "summarize"}, {"stage": "drop_oldest"}]}, summarizer=own)
    said = await running.chat(history(20), session="s")
    assert (said.status, said.text) == (200, "ok")
    assert "summarize" in said.actions
    assert behaves in caplog.text
    assert "secret words" not in caplog.text
    await running.settled()
    _, shown = await running.admin("GET", "sessions/s")
    assert shown["summaries"] == []


@pytest.mark.parametrize("answer", ["text", "{'content': text}", "types.SimpleNamespace(content=text)", "later(text)"])
@pytest.mark.parametrize("define", ["def", "async def"])
async def test_a_summarizer_may_be_async_or_not_and_answer_a_text_or_something_that_has_one(
    define: str,
    answer: str,
    folder: Path,
    proxy: StartProxy,  # noqa: F811
    upstream: ScriptedUpstream,  # noqa: F811
) -> None:
    lines = [
        "import types",
        "async def later(text): return text",
        f"{define} summarize(request):",
        "    text = f'The user asked for {len(request.messages)} things, {request.language}, {request.pins}.'",
        f"    return {'await ' if define == 'async def' and answer.startswith('later') else ''}{answer}",
    ]
    (folder / "answering_parts.py").write_text("\n".join(lines), encoding="utf-8")
    own = {"kind": "answering_parts:summarize", "background": False}
    running = await proxy(upstream, context={"max_tokens": 2000, "pipeline": [{"stage": "summarize"}]}, summarizer=own)
    await running.chat(history(20), session="s")
    assert re.search(r"The user asked for \d+ things, en, \(\)\.", str(upstream.calls[-1].json["messages"][0]["content"]))


BREAKING = """
from ctxproxy.core.stages.base import Stage
from ctxproxy.core.transcript import Fold, Span

class Raises(Stage):
    def due(self, transcript, context):
        raise ValueError
    def propose(self, transcript, context):
        raise KeyError

class Parts(Stage):
    name = "parts_calls"
    def propose(self, transcript, context):
        yield Fold(Span(2, 3), (), "the result alone")
"""


async def test_a_stage_that_breaks_a_rule_is_undone_and_named(folder: Path, proxy: StartProxy, upstream: ScriptedUpstream) -> None:  # noqa: F811
    (folder / "breaking_parts.py").write_text(BREAKING, encoding="utf-8")
    pipeline = [{"stage": "breaking_parts:Raises"}, {"stage": "breaking_parts:Parts"}, {"stage": "drop_oldest"}]
    running = await proxy(upstream, context={"max_tokens": 2000, "pipeline": pipeline})
    short = await running.chat("hi", session="t")
    assert short.actions == {}
    said = await running.chat(history(20), session="s")
    assert said.text == "ok"
    assert {"drop_oldest", "failed_breaking_parts:Raises", "failed_parts_calls"} == said.actions.keys()


MODULE = """
from ctxproxy.core.stages.base import Stage, register

def summarize(request): return ""
class Mine(Stage):
    count: int = 1
    def propose(self, transcript, context): yield from ()
class Idle(Stage): pass
class Spaced(Mine):
    name = "two words"
class Taken(Mine):
    name = "drop_oldest"
class Optioned(Stage):
    name: str = "x"
    def propose(self, transcript, context): yield from ()
@register("clear", loss="lossy")
class Clearing(Mine): pass
number = 7
"""


@pytest.mark.parametrize(
    ("keys", "path", "words"),
    [
        ({"summarizer": {"kind": "wrong_parts:summarise"}}, "summarizer.kind", "has no summarise; did you mean wrong_parts:summarize?"),
        ({"summarizer": {"kind": "wrong_parts:zzz"}}, "summarizer.kind", "has no zzz; it has summarize, Mine, Idle, "),
        ({"summarizer": {"kind": "wrong_prts:summarize"}}, "summarizer.kind", "there is no module wrong_prts; did you mean wrong_parts?"),
        ({"summarizer": {"kind": "no.such.thing:summarize"}}, "summarizer.kind", "there is no module no.such.thing; it is looked for"),
        ({"summarizer": {"kind": "wrong_parts:number"}}, "summarizer.kind", "is no function, but a value of type int"),
        ({"summarizer": {"kind": "wrong_parts:Mine"}}, "summarizer.kind", "is no function, but the class Mine"),
        ({"summarizer": {"kind": "needing_parts:f"}}, "summarizer.kind", "needing_parts needs the module absent_thing"),
        (
            {"summarizer": {"kind": "raising_parts:f"}},
            "summarizer.kind",
            "cannot be imported: ZeroDivisionError: division by zero (line 1 of raising_parts.py)",
        ),
        (
            {"summarizer": {"kind": "extractve"}},
            "summarizer.kind",
            "expected extractive | llm | off | module:function, not 'extractve'; did you mean extractive?",
        ),
        (
            {"context": {"pipeline": [{"stage": "drop_oldest"}, {"stage": "wrong_parts:Mne"}]}},
            "context.pipeline[1].stage",
            "did you mean wrong_parts:Mine?",
        ),
        (
            {"profiles": {"p": {"pipeline": [{"stage": "wrong_parts:summarize"}]}}},
            "profiles.p.pipeline[0].stage",
            "is no stage, but a value of type function",
        ),
        (
            {"context": {"pipeline": [{"stage": "wrong_parts:Idle"}]}},
            "context.pipeline[0].stage",
            "is no stage, but the class Idle: a stage is a subclass",
        ),
        ({"context": {"pipeline": [{"stage": "wrong_parts:Spaced"}]}}, "context.pipeline[0].stage", "its `name` must be a text of letters"),
        ({"context": {"pipeline": [{"stage": "wrong_parts:Optioned"}]}}, "context.pipeline[0].stage", "its `name` must be a text of letters"),
        ({"context": {"pipeline": [{"stage": "wrong_parts:Taken"}]}}, "context.pipeline[0].stage", "another stage has the name drop_oldest"),
        ({"context": {"pipeline": [{"stage": "wrong_parts:Clearing"}]}}, "context.pipeline[0].stage", "another stage has the name clear"),
        ({"context": {"pipeline": [{"stage": "wrong parts:Mine"}]}}, "context.pipeline[0].stage", "expected module:name, like my_module:MyStage"),
        (
            {"context": {"pipeline": [{"stage": "wrong_parts:Mine", "count": "x"}]}},
            "context.pipeline",
            "stage wrong_parts:Mine: Expected `int`, got `str`",
        ),
        ({"context": {"pipeline": [{"stage": "wrong_parts:Mine", "cont": 2}]}}, "context.pipeline", "unknown field `cont`"),
    ],
)
def test_a_wrong_part_stops_the_start_with_its_key_the_reason_and_the_nearest_name(keys: dict[str, Any], path: str, words: str, folder: Path) -> None:
    (folder / "wrong_parts.py").write_text(MODULE, encoding="utf-8")
    (folder / "needing_parts.py").write_text("import absent_thing", encoding="utf-8")
    (folder / "raising_parts.py").write_text("1 / 0", encoding="utf-8")
    before = dict(REGISTRY)
    (folder / "config.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(None, {}, {})
    assert caught.value.message.startswith(f"{path}: ")
    assert words in caught.value.message
    assert {name: REGISTRY[name] for name in before} == before


def test_check_imports_the_parts_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "config.yaml").write_text("summarizer: {kind: checked_parts:summarize}", encoding="utf-8")
    assert main(["check"]) == 1
    assert "summarizer.kind: there is no module checked_parts" in capsys.readouterr().err
    (folder / "checked_parts.py").write_text("def summarize(request): return ''", encoding="utf-8")
    assert main(["check"]) == 0
    assert "kind: checked_parts:summarize" in capsys.readouterr().out


def test_modules_are_found_beside_the_configuration_file_and_never_before_installed_ones(folder: Path) -> None:
    beside = folder / "etc"
    beside.mkdir()
    (beside / "beside_parts.py").write_text("def summarize(request): return ''", encoding="utf-8")
    (beside / "wave.py").write_text("1 / 0", encoding="utf-8")
    (beside / "config.yaml").write_text("summarizer: {kind: beside_parts:summarize}", encoding="utf-8")
    assert load(beside / "config.yaml", {}, {}).summarizer.kind == "beside_parts:summarize"
    (beside / "config.yaml").write_text("summarizer: {kind: wave:open}", encoding="utf-8")
    assert load(beside / "config.yaml", {}, {}).summarizer.manner == "llm"


def test_a_reload_with_a_wrong_part_keeps_the_old_settings(folder: Path) -> None:
    file = folder / "config.yaml"
    file.write_text("context: {max_tokens: 3000}", encoding="utf-8")
    holder = Holder(load(None, {}, {}), {})
    file.write_text('context: {pipeline: [{stage: "later_parts:Mine"}]}', encoding="utf-8")
    outcome = holder.reload()
    assert isinstance(outcome, Refused)
    assert "context.pipeline[0].stage: there is no module later_parts" in outcome.error.message
    assert holder.current().context.max_tokens == 3000
    (folder / "later_parts.py").write_text(MODULE, encoding="utf-8")
    assert isinstance(holder.reload(), Reloaded)
    assert holder.current().context.pipeline == ({"stage": "later_parts:Mine"},)


def test_a_stage_is_known_by_its_path_and_by_its_own_name(folder: Path) -> None:
    (folder / "named_parts.py").write_text(MODULE.replace('"two words"', '"mine"').replace('"clear"', '"clearing"'), encoding="utf-8")
    stages = [{"stage": f"named_parts:{name}"} for name in ("Mine", "Spaced", "Clearing")]
    (folder / "config.yaml").write_text(yaml.safe_dump({"context": {"pipeline": stages}}), encoding="utf-8")
    load(None, {}, {})
    load(None, {}, {})
    assert [(REGISTRY[f"named_parts:{name}"].name) for name in ("Mine", "Spaced", "Clearing")] == ["named_parts:Mine", "mine", "clearing"]
    assert REGISTRY["mine"] is REGISTRY["named_parts:Spaced"]
    assert REGISTRY["named_parts:Mine"].loss == "lossy"
