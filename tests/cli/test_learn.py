"""Weights are learned from a log of outcomes, and what is printed can be loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxproxy.cli.main import main
from ctxproxy.config.load import read
from ctxproxy.config.policies import policy_for
from ctxproxy.config.schema import Settings
from ctxproxy.core.learned_priorities import Cell, Tally, as_line
from ctxproxy.core.presets import retrieves, stages_of
from ctxproxy.core.priorities import SCORES
from ctxproxy.core.stages.priority_window import PriorityWindow

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "how-it-decides.md"
OUTCOMES = as_line({Cell("result", "", False, 1): Tally(500, 200), Cell("key_result", "", True, 1): Tally(500, 5)})


def loaded(folder: Path, text: str) -> Settings:
    file = folder / "loaded.yaml"
    file.write_text(text, encoding="utf-8")
    return read(file, {}, {}).settings


def window_of(settings: Settings, name: str) -> PriorityWindow:
    [window] = [stage for stage in stages_of(policy_for(settings, name, "m")) if isinstance(stage, PriorityWindow)]
    return window


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_001_80_what_is_learned_is_a_profile_that_can_be_loaded(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "outcomes.1.jsonl").write_bytes(OUTCOMES)
    (data / "outcomes.jsonl").write_bytes(OUTCOMES + b'[["result", "", fal')
    assert main(["learn"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# Learned from 2000 messages in prompts, of which answers quoted 410.\n")
    settings = loaded(tmp_path, printed)
    window, policy = window_of(settings, "learned"), policy_for(settings, "learned", "m")
    assert window.scores["result"] > SCORES["result"]
    assert window.scores["result"] > window.scores["key_result"] + window.bonuses["keyword"]
    assert policy.max_tokens == policy_for(settings, "hybrid", "m").max_tokens
    assert [stage.name for stage in stages_of(policy)] == [stage.name for stage in stages_of(policy_for(settings, "hybrid", "m"))]
    assert retrieves(policy)


def test_logs_and_the_profiles_name_can_be_given(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.jsonl").write_bytes(OUTCOMES)
    assert main(["learn", "other.jsonl", "--name", "mine"]) == 0
    assert window_of(loaded(tmp_path, capsys.readouterr().out), "mine").scores


def test_too_little_or_a_log_that_cannot_be_read_is_told(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn"]) == 1
    assert "too few outcomes in data/outcomes.1.jsonl and data/outcomes.jsonl" in capsys.readouterr().err
    assert main(["learn", str(data)]) == 1
    assert f"{data}: Is a directory" in capsys.readouterr().err


def test_the_example_of_the_documents_can_be_loaded(tmp_path: Path) -> None:
    [example] = [block for block in re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL) if "# Learned from" in block]
    window = window_of(loaded(tmp_path, example), "learned")
    assert set(window.scores) == {"key_result", "reasoning", "user", "result", "assistant", "small_talk"}
    assert set(window.bonuses) == {"keyword", "recency", "preference", "rule"}
