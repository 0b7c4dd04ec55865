from __future__ import annotations

from pathlib import Path

import yaml

from ctxproxy.config.explain import explain
from ctxproxy.config.load import Loaded, load, read

TEXT = """
context: {preset: off, pipeline: [{stage: drop_oldest}]}
profiles: {small: {max_tokens: 300}}
models: [{match: "a*", window: 10}]
"""


def loaded(tmp_path: Path, text: str) -> Loaded:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return read(path, {"CTXPROXY_LISTEN__PORT": "9"}, {"log.level": "debug"})


def test_what_is_shown_is_a_file_that_means_the_same(tmp_path: Path) -> None:
    first = loaded(tmp_path, TEXT)
    again = tmp_path / "again.yaml"
    again.write_text(explain(first), encoding="utf-8")
    second = load(again, {}, {})
    assert all(getattr(first.settings, name) == getattr(second, name) for name in ("listen", "context", "profiles", "models", "store", "log"))


def test_what_is_no_default_has_its_source(tmp_path: Path) -> None:
    lines = [line.strip() for line in explain(loaded(tmp_path, TEXT)).splitlines()]
    assert "port: 9  # from CTXPROXY_LISTEN__PORT" in lines
    assert "level: debug  # from the command line" in lines
    assert f"preset: 'off'  # from {tmp_path / 'config.yaml'}" in lines
    assert "host: 127.0.0.1" in lines


def test_empty_sections_of_a_file_are_shown_with_their_defaults(tmp_path: Path) -> None:
    assert yaml.safe_load(explain(loaded(tmp_path, "store: {}\nadmin:\n")))["store"] == {"url": "sqlite:///ctxproxy.db", "cache_mb": 32}
