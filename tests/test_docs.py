"""The documents are true where a machine can tell: every setting and verb is in them, their commands and links exist."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import msgspec
import pytest
import yaml
from aiohttp import web
from prometheus_client import Counter

from ctxproxy import __version__, errors
from ctxproxy.admin.api import API, add_admin
from ctxproxy.cli.main import VERBS
from ctxproxy.config.describe import Row, rows
from ctxproxy.config.load import read
from ctxproxy.config.schema import Settings
from ctxproxy.config.unavailable import TABLE
from ctxproxy.core.messages import Directives
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.records import WindowSource
from ctxproxy.core.stages import base
from ctxproxy.proxy import exchange, identify, rescue
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.state import State

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "ctxproxy"
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
        if line.startswith("./scripts/")
    ]
    assert [command.split()[0] for command in commands[:2]] == ["./scripts/serve", "./scripts/test"]


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


# --- what the code has, the documents tell -----------------------------------------------------------------------------------------


def row_of(document: str, *cells: str) -> str:
    """The rest of the table row that begins with these cells; fails the test if there is none."""
    start = "| " + " | ".join(cells) + " | "
    found = [line.removeprefix(start) for line in text_of(document).splitlines() if line.startswith(start)]
    assert len(found) == 1, f"{document}: {len(found)} rows begin with {start}"
    return found[0]


@pytest.mark.parametrize("name", sorted(base.REGISTRY))
def test_each_stage_has_its_row_with_every_option_and_its_default(name: str) -> None:
    stage = base.REGISTRY[name]
    row = row_of("docs/how-it-decides.md", f"`{name}`", stage.loss)
    options = {field.name: field.default for field in msgspec.structs.fields(stage)}
    assert set(re.findall(r"`(\w+: [\d.]+)`", row)) == {f"{option}: {default}" for option, default in options.items()}


def test_each_preset_is_told_with_its_stages_in_order() -> None:
    text = text_of("docs/how-it-decides.md")
    assert [name for name in PRESETS if f"| `{name}` |" not in text] == []
    assert re.findall(r"`(\w+)`", row_of("docs/how-it-decides.md", "`adaptive`")) == [str(spec["stage"]) for spec in PRESETS["adaptive"].stages]
    assert PRESETS["lossless"].stages == PRESETS["adaptive"].stages[:5]


@pytest.mark.parametrize("key", ["compact_at", "summarize_at", "target", "min_gain"])
def test_the_shares_that_are_told_are_the_defaults(key: str) -> None:
    assert f"{getattr(Policy(), key):.0%} (`{key}`)".replace("%", " %", 1) in text_of("docs/how-it-decides.md")


def test_each_source_of_a_window_and_each_directive_is_told() -> None:
    for source in get_args(WindowSource):
        row_of("docs/how-it-decides.md", f"`{source}`")
    text = text_of("docs/how-it-decides.md")
    assert [name for name in Directives._fields if f"| `{name}: " not in text] == []


def test_each_mark_beside_the_stages_is_told() -> None:
    source = inspect.getsource(rescue) + inspect.getsource(exchange)
    marks = set(re.findall(r'\(\("(\w+)", 1\)|\[\("(\w+)", 1\)\]', source))
    names = {one or other for one, other in marks} | set(re.findall(r'early, "(\w+)"\)', source))
    assert {"observed", "replay", "failed_open", "store_unavailable"} <= names
    text = text_of("docs/how-it-decides.md")
    assert [name for name in sorted(names) if not re.search(rf"^\| `{name}(?:=1)?` \|", text, re.MULTILINE)] == []


def test_each_header_of_ours_is_told() -> None:
    answered = re.findall(r'"(X-[\w-]+)"', inspect.getsource(exchange.context_headers))
    assert len(answered) == 6
    text = text_of("README.md")
    assert [name for name in (*answered, *identify.own_headers(Settings())) if f"| `{name}` |" not in text] == []


def test_each_metric_is_told_under_the_name_it_is_scraped_by() -> None:
    metrics = [value for value in vars(Metrics()).values() if hasattr(value, "describe")]
    names = [family.name + ("_total" if isinstance(metric, Counter) else "") for metric in metrics for family in metric.describe()]
    assert len(names) == 10
    text = text_of("docs/operations.md")
    assert [name for name in names if f"| `{name}` |" not in text] == []


def admin_calls() -> list[str]:
    app = web.Application()
    add_admin(app, cast("State", SimpleNamespace(settings=Settings)))
    return [f"{route.method} {route.resource.canonical.removeprefix(API)}" for route in app.router.routes() if route.resource]


@pytest.mark.parametrize("call", admin_calls())
def test_each_call_of_the_admin_api_is_told(call: str) -> None:
    assert row_of("README.md", f"`{call}`")


def test_each_code_of_our_errors_is_told() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CtxproxyError)]
    unseen = {errors.CtxproxyError, errors.ConfigError, errors.WireError, errors.InvalidEdit}  # they end the start, or are caught
    text = text_of("docs/operations.md")
    assert [kind.code for kind in kinds if kind not in unseen and f"`{kind.code}` ({kind.status}" not in text] == []


def log_lines() -> Iterator[str]:
    """The longest fixed piece of each line that is logged from warnings on."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name("log"), attr="warning" | "error" | "exception"), args=[ast.Constant(str(words)), *_]):
                    yield max(re.split(r"%[sd]", words), key=len)


def test_each_warning_of_the_log_is_told() -> None:
    text = text_of("docs/operations.md")
    pieces = [piece.strip(" :;(")[:25].strip() for piece in log_lines()]
    assert len(pieces) > 10
    assert [piece for piece in pieces if piece not in text] == []


def test_a_setting_without_effect_is_told_as_such() -> None:
    meanings = {line.split("|")[1].strip(" `"): line for line in text_of("docs/configuration.md").splitlines() if line.startswith("| `")}
    assert [row.path for row in TABLE if row.idle and "No effect in this version" not in meanings[row.path]] == []


# --- what the documents name is there ----------------------------------------------------------------------------------------------


def told_modules() -> set[str]:
    """The modules that docs/architecture.md lists, as paths below the package."""
    found, folder = set(), None
    for line in text_of("docs/architecture.md").splitlines():
        if line.startswith("#"):
            heading = re.fullmatch(r"### `ctxproxy/(.*)`", line)
            folder = heading[1] if heading else None
        elif folder is not None and line.startswith("| `"):
            found |= {folder + name for name in re.findall(r"`(\w+\.py)`", line.split("|")[1])}
    return found


def test_the_architecture_lists_every_module_and_no_other() -> None:
    modules = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py") if file.name != "__init__.py"}
    assert told_modules() ^ modules == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_the_files_that_are_named_exist(document: Path) -> None:
    named = re.findall(
        r"`((?:\.ci|cli|config|core|ctxproxy|docs|proxy|scripts|store|tests|upstream)/[\w./-]*)`", document.read_text(encoding="utf-8")
    )
    assert [name for name in named if not (PROJECT / name).exists() and not (PACKAGE / name).exists()] == []


def test_the_yaml_of_the_readme_is_a_valid_configuration(tmp_path: Path) -> None:
    blocks: list[Any] = re.findall(r"```yaml\n(.*?)```", text_of("README.md"), re.DOTALL)
    assert blocks
    for block in blocks:
        file = tmp_path / "config.yaml"
        file.write_text(block, encoding="utf-8")
        assert read(file, {}, {}).settings.origin == file
