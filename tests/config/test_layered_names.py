"""The settings file of the layered memory manager is taken as it is (003-42)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.config.explain import explain
from ctxproxy.config.load import load, read
from ctxproxy.errors import ConfigError

FLAT = """
working_memory_size: 5
vector_db: chroma
top_k: 3
similarity_threshold: 0.78
db_type: postgresql
backup_interval: 300
max_connections: 20
compression: {enable: true, strategy: hybrid, min_context_length: 1000}
"""
IN_SECTIONS = """
context_management:
  working_memory_size: 5
  short_term: {vector_db: chroma, top_k: 3, similarity_threshold: 0.78}
  long_term: {db_type: postgresql, backup_interval: 300, max_connections: 20}
  compression: {enable: true, strategy: hybrid, min_context_length: 1000}
"""


def file_of(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("text", [FLAT, IN_SECTIONS])
def test_003_42_the_file_loads_and_each_key_is_mapped_or_told(tmp_path: Path, text: str) -> None:
    loaded = read(file_of(tmp_path, text), {}, {})
    context = loaded.settings.context
    assert (context.keep_recent_turns, context.preset, loaded.settings.retrieval.top_k) == (5, "layered", 3)
    told = {note.partition(":")[0] for note in loaded.settings.notes}
    assert told == {"vector_db", "similarity_threshold", "db_type", "backup_interval", "max_connections", "min_context_length"}
    assert all(f"# {note}" in explain(loaded) for note in loaded.settings.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("db_type: oracle", "db_type: there is no 'oracle' here; known are sqlite, postgresql"),
        ("vector_db: {db_type: sqlite, vector_db: abacus}", "vector_db: there is no 'abacus' here; known are chroma"),
        ("compression: {strategy: zip}", "strategy: there is no 'zip' here; known are hybrid"),
        ("working_memory_size: many", "context.keep_recent_turns: expected whole number from 0 | auto, not 'many'"),
        ("compression: {enable: true, level: 9}", "compression: there is no such key"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file_of(tmp_path, text), {}, {})
    assert message in caught.value.message


def test_compression_turned_off_and_a_file_on_disk_need_no_word(tmp_path: Path) -> None:
    settings = load(file_of(tmp_path, "compression: {enable: false}\ndb_type: sqlite\n"), {}, {})
    assert (settings.context.preset, settings.notes) == ("off", ())


def test_our_own_keys_go_before_theirs(tmp_path: Path) -> None:
    settings = load(file_of(tmp_path, "context: {keep_recent_turns: 2}\nworking_memory_size: 5\nretrieval: {top_k: 3}\n"), {}, {})
    assert settings.context.keep_recent_turns == 2
