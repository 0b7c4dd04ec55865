"""The house rules that a machine can check: sizes, mirrored tests, names of files, what no file may hold, the locks."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "ctxproxy"
MODULES = sorted(PACKAGE.rglob("*.py"))
CORE = [file for file in sorted((PACKAGE / "core").rglob("*.py")) if file.name != "__init__.py"]

MAX_LINES, MAX_STAGE_LINES, MAX_FUNCTION_LINES = 300, 100, 60
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
REGISTRY_HOSTS = re.compile(
    "|".join(re.escape(name + "." + end) for name, end in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com")))
)
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:" + "|".join(("work", "farm", "root")) + r")/[\w.]")
LARGE_BYTES = 1_000_000


def tracked() -> list[Path]:
    """The files that are, or would be with the next `git add`, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [PROJECT / name for name in names if (PROJECT / name).is_file()]


def texts() -> list[tuple[str, str]]:
    """Name and text of every tracked file that is text."""
    found = []
    for file in tracked():
        if file.stat().st_size > LARGE_BYTES:
            continue
        try:
            found.append((str(file.relative_to(PROJECT)), file.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def named(file: Path) -> str:
    return str(file.relative_to(PROJECT))


@pytest.mark.parametrize("file", MODULES, ids=named)
def test_a_file_is_short_enough_to_be_read_at_once(file: Path) -> None:
    stage = file.parent == PACKAGE / "core" / "stages"
    assert len(file.read_text(encoding="utf-8").splitlines()) <= (MAX_STAGE_LINES if stage else MAX_LINES)


@pytest.mark.parametrize("file", MODULES, ids=named)
def test_no_function_is_long(file: Path) -> None:
    functions = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {node.name: length for node in functions if (length := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES}
    assert long == {}


def acts(file: Path) -> bool:
    """Whether a module has functions; one that only declares values and types has nothing to test but its users."""
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("file", [file for file in CORE if acts(file)], ids=named)
def test_each_module_of_the_core_has_its_mirrored_test(file: Path) -> None:
    below = file.relative_to(PACKAGE / "core")
    assert (PROJECT / "tests" / "core" / below.parent / f"test_{below.name}").exists()


@pytest.mark.parametrize("file", CORE, ids=named)
def test_a_transcript_is_changed_by_its_own_method_alone(file: Path) -> None:
    """`dataclasses.replace` raises for a `Whole`, which most tests of the core have not."""
    calls = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    replaced = [{one.arg for one in call.keywords} for call in calls if isinstance(call.func, ast.Name) and call.func.id == "replace"]
    assert not [names for names in replaced if names and names <= {"entries", "left"}]


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [named(file) for file in tracked() if file.suffix == ".py" and file.stem in VAGUE_NAMES] == []


def test_no_file_names_a_registry_host() -> None:
    assert [name for name, text in texts() if REGISTRY_HOSTS.search(text)] == []


def test_no_file_holds_a_path_of_one_machine() -> None:
    assert [name for name, text in texts() if MACHINE_PATHS.search(text)] == []


def test_scripts_can_be_run() -> None:
    scripts = [PROJECT / ".ci" / "run", *sorted((PROJECT / "scripts").iterdir())]
    assert [named(script) for script in scripts if not script.stat().st_mode & 0o111 or not script.read_text(encoding="utf-8").startswith("#!")] == []


def pins(name: str) -> dict[str, str]:
    """Package → version of a lock; every pin must have a hash."""
    found = {}
    for block in re.split(r"\n(?=\S)", (PROJECT / name).read_text(encoding="utf-8")):
        if block.startswith("#"):
            continue
        pin = re.match(r"([a-z0-9-]+)==(\S+)", block)
        assert pin, f"{name}: no pin: {block.splitlines()[0]}"
        assert "--hash=sha256:" in block, f"{name}: no hash: {pin[1]}"
        found[pin[1]] = pin[2]
    return found


def wanted(requirements: list[str]) -> set[str]:
    """The normalized names of requirements (PEP 503)."""
    return {re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower() for requirement in requirements}


def test_the_locks_pin_what_the_project_asks_for_and_agree() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime, dev = pins("requirements.lock"), pins("requirements-dev.lock")
    assert wanted([*project["build-system"]["requires"], *project["project"]["dependencies"]]) - runtime.keys() == set()
    assert wanted(project["dependency-groups"]["dev"]) - dev.keys() == set()
    assert runtime.items() - dev.items() == set()


def test_each_extra_has_a_lock_that_agrees_with_the_tests_lock() -> None:
    dev = pins("requirements-dev.lock")
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name, requirements in extras.items():
        locked = pins(f"requirements-{name}.lock")
        assert wanted(requirements) - locked.keys() == set()
        assert {package for package in locked.keys() & dev.keys() if locked[package] != dev[package]} == set()
