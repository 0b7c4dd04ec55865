"""The documents are true where a machine can tell: every setting and verb is in them, their commands and links exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ctxproxy import __version__
from ctxproxy.cli.main import VERBS
from ctxproxy.config.describe import Row, rows
from ctxproxy.config.load import read

PROJECT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])


def text_of(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def documented() -> list[Row]:
    """The rows of the reference: key, kind, default."""
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text_of("docs/configuration.md").splitlines() if re.match(r"\| `[a-z_.\[\]]+` \|", line)]
    return [Row(key.strip(" `"), kind.strip().replace("\\|", "|"), default.strip(" `")) for key, kind, default, meaning in cells if meaning.strip()]


def test_the_reference_has_each_key_once_with_its_type_its_default_and_a_meaning() -> None:
    assert documented() == rows()


def test_the_sample_file_holds_the_defaults() -> None:
    loaded = read(PROJECT / "config.yaml", {}, {})
    assert loaded.settings == type(loaded.settings)(origin=PROJECT / "config.yaml")


def test_the_sample_file_names_every_key() -> None:
    assert sorted(leaves(yaml.safe_load(text_of("config.yaml")))) == sorted(row.path for row in rows() if "[]" not in row.path)


def leaves(tree: dict[str, object], path: str = "") -> list[str]:
    found = []
    for key, value in tree.items():
        found += leaves(value, f"{path}{key}.") if isinstance(value, dict) and value else [path + key]
    return found


def test_the_first_two_commands_of_the_readme_are_serve_and_test() -> None:
    commands = [
        line
        for block in re.findall(r"```\w*\n(.*?)```", text_of("README.md"), re.DOTALL)
        for line in block.splitlines()
        if line.startswith("scripts/")
    ]
    assert [command.split()[0] for command in commands[:2]] == ["scripts/serve", "scripts/test"]


def test_the_changelog_has_this_version() -> None:
    assert re.search(rf"^## .*{re.escape(__version__)}", text_of("CHANGELOG.md"), re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_of_the_command_line_is_in_the_readme(verb: str) -> None:
    assert re.search(rf"`?(?:ctxproxy|scripts/) ?{verb}\b", text_of("README.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_links_inside_the_project_lead_somewhere(document: Path) -> None:
    targets = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8")) if "://" not in link]
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_the_documents_that_are_promised_are_there() -> None:
    assert [name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/architecture.md") if not (PROJECT / name).exists()] == []
