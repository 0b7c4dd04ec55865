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
from ctxproxy.config.schema import Settings, as_tree
from ctxproxy.core.messages import Directives
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.records import WindowSource
from ctxproxy.core.stages import base
from ctxproxy.proxy import exchange, identify, rescue
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.state import State
from tests.shared_dir import shared

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "ctxproxy"
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])


def text_of(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def documented() -> list[Row]:
    """The rows of the reference: key, kind, default."""
    table = text_of("docs/configuration.md").partition("## Keys\n")[2]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines() if re.match(r"\| `[a-z_.\[\]]+` \|", line)]
    return [Row(key.strip(" `"), kind.strip().replace("\\|", "|"), default.strip(" `")) for key, kind, default, meaning in cells if meaning.strip()]


def test_the_reference_has_each_key_once_with_its_type_its_default_and_a_meaning() -> None:
    assert documented() == rows()


def test_the_sample_file_holds_the_defaults() -> None:
    assert as_tree(read(PROJECT / "config.yaml", {}, {}).settings) == as_tree(Settings())


def uncommented() -> str:
    """The sample file with the keys that stand in it as comments."""
    return re.sub(r"^  # (\w+: )", r"  \1", text_of("config.yaml"), flags=re.MULTILINE)


def test_the_sample_file_names_every_key() -> None:
    assert sorted(leaves(yaml.safe_load(uncommented()))) == sorted(row.path for row in rows() if "[]" not in row.path)


def test_the_keys_that_are_comments_in_the_sample_file_have_their_defaults_too(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(uncommented(), encoding="utf-8")
    assert as_tree(read(file, {}, {}).settings) == as_tree(Settings())


def test_the_sample_file_sets_no_key_for_which_a_preset_has_a_default_of_its_own() -> None:
    explicit = read(PROJECT / "config.yaml", {}, {}).settings.explicit
    assert [(name, key) for name, preset in PRESETS.items() for key in preset.defaults if key in explicit] == []


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
    above = cast("type[base.Stage]", stage.__base__)  # what it inherits is told in the row of that stage
    inherited = {field.name: field.default for field in msgspec.structs.fields(above)}
    options = {f.name: f.default for f in msgspec.structs.fields(stage) if inherited.get(f.name, msgspec.UNSET) != f.default}
    numbers = {name: default for name, default in options.items() if type(default) in (int, float)}
    assert set(re.findall(r"`(\w+: [\d.]+)`", row)) == {f"{option}: {default}" for option, default in numbers.items()}
    assert [option for option in options if not re.search(rf"`{option}[`:]", row)] == []


def test_each_preset_is_told_with_its_stages_in_order() -> None:
    text = text_of("docs/how-it-decides.md")
    assert [name for name in PRESETS if f"| `{name}` |" not in text] == []
    for name in ("adaptive", "lossless"):
        row, stages = row_of("docs/how-it-decides.md", f"`{name}`"), PRESETS[name].stages
        assert re.findall(r"`(\w+)`", row) == [spec["stage"] for spec in stages]
        options = [f"{key}: {str(value).lower()}" for spec in stages for key, value in spec.items() if key != "stage"]
        assert re.findall(r"`(\w+: [^`]+)`", row) == options


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
    assert len(answered) > 5
    text = text_of("README.md")
    assert [name for name in (*answered, *identify.own_headers(Settings())) if f"| `{name}` |" not in text] == []


def test_each_metric_is_told_under_the_name_it_is_scraped_by() -> None:
    metrics = [value for value in vars(Metrics()).values() if hasattr(value, "describe")]
    names = [family.name + ("_total" if isinstance(metric, Counter) else "") for metric in metrics for family in metric.describe()]
    assert len(names) > 10
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
    unseen = {
        errors.CtxproxyError,
        errors.ConfigError,
        errors.WireError,
        errors.InvalidEdit,
        errors.EmbedderUnavailable,
    }  # they end the start, or are caught
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


@pytest.mark.parametrize("document", ["README.md", "docs/configuration.md"])
def test_the_yaml_of_the_documents_is_a_valid_configuration(tmp_path: Path, document: str) -> None:
    blocks: list[Any] = re.findall(r"```yaml\n(.*?)```", text_of(document), re.DOTALL)
    assert blocks
    for block in blocks:
        file = tmp_path / "config.yaml"
        file.write_text(block, encoding="utf-8")
        assert read(file, {}, {}).settings.origin == file


# --- the reference systems, row by row ---------------------------------------------------------------------------------------------

ROW_ID = r"\d{3}-S?\d+"


def reference_rows() -> list[list[str]]:
    """The cells of each row of docs/reference-systems.md: id, what is done, option, tests, deviation."""
    lines = text_of("docs/reference-systems.md").splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if re.match(rf"\| {ROW_ID} \|", line)]


def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")}


def test_each_row_of_a_reference_system_names_a_test_or_says_why_there_is_none() -> None:
    assert [row for row, _, _, tests, _ in reference_rows() if not tests.startswith(("`tests/", "none: "))] == []


def test_each_test_that_a_reference_system_names_exists() -> None:
    known: dict[str, set[str]] = {}
    gone = []
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text_of("docs/reference-systems.md")):
        if name not in known.setdefault(file, names_in(PROJECT / file) if (PROJECT / file).exists() else set()):
            gone.append(f"{file}::{name}")
    assert known
    assert gone == []


def test_each_test_of_a_reference_system_is_named_in_the_table() -> None:
    text = text_of("docs/reference-systems.md")
    files = sorted((PROJECT / "tests" / "reference").glob("test_*.py"))
    names = [f"{file.relative_to(PROJECT).as_posix()}::{name}" for file in files for name in sorted(names_in(file))]
    assert names
    assert [name for name in names if f"`{name}`" not in text] == []


def test_each_row_of_the_specification_is_in_the_table_or_comes_with_memory() -> None:
    specified = re.findall(rf"^\| ({ROW_ID}) \|", shared("spec/REFERENCE_SYSTEMS.md").read_text(encoding="utf-8"), re.MULTILINE)
    told = [row for row, *_ in reference_rows()]
    listed = [row for line in text_of("docs/reference-systems.md").splitlines() if not line.startswith("|") for row in re.findall(ROW_ID, line)]
    assert sorted([*told, *listed]) == sorted(specified)
