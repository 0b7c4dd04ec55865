"""Imports point downwards only: the table of docs/architecture.md, checked on the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "ctxproxy"
ADAPTERS = {"store", "upstream", "tokenizers", "embedders"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "core": {"errors"},
    "ports": {"core", "errors"},
    **{adapter: {"ports", "core", "errors"} for adapter in ADAPTERS},
    "config": {"core", "errors"},
    "proxy": {"config", "ports", "core", "errors"},
    "admin": {"proxy", "config", "ports", "core", "errors"},
    "workers": set(),
    "wiring": {"errors", "core", "ports", "config", "proxy", "admin", "workers", *ADAPTERS},
    "serving": {"errors", "core", "ports", "config", "proxy", "admin", "workers", "wiring", *ADAPTERS},
    "cli": {"errors", "core", "ports", "config", "proxy", "admin", "workers", "wiring", "serving", *ADAPTERS},
    "__main__": {"cli"},
}
CORE_LIBRARIES = {"msgspec", "brotli", "backports"}
"""What the core may use beside the standard library: all of it gives the same answer to the same bytes."""
CORE_STDLIB = {
    *("__future__", "abc", "array", "base64", "binascii", "bisect", "codecs", "collections", "compression", "copy", "dataclasses", "decimal"),
    *("difflib", "enum", "fnmatch", "fractions", "functools", "hashlib", "heapq", "hmac", "html", "io", "ipaddress", "itertools", "json", "keyword"),
    *("math", "operator", "re", "statistics", "string", "struct", "sys", "textwrap", "types", "typing", "unicodedata", "urllib.parse", "zlib"),
}
"""The part of the standard library without a clock, chance, files, sockets, threads or logs."""

FILES = sorted(PACKAGE.rglob("*.py"))


def layer_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a module imports, wherever in it; `from ctxproxy import x` counts as `ctxproxy.x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            if node.module == "ctxproxy":
                yield from (f"ctxproxy.{alias.name}" for alias in node.names)
            else:
                yield node.module


def of(file: Path) -> list[str]:
    return list(imported(ast.parse(file.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_module_imports_only_from_its_own_layer_and_those_below(file: Path) -> None:
    own = layer_of(file)
    if own == "__init__":
        return
    allowed = {own, "__version__", *MAY_IMPORT[own]}
    wrong = [name for name in of(file) if name.startswith("ctxproxy.") and name.split(".")[1] not in allowed]
    assert wrong == []


@pytest.mark.parametrize("file", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_the_core_knows_no_clock_no_chance_and_no_outside_world(file: Path) -> None:
    wrong = [
        name
        for name in of(file)
        if not name.startswith("ctxproxy")
        and name.split(".")[0] not in CORE_LIBRARIES
        and name not in CORE_STDLIB
        and name.split(".")[0] not in CORE_STDLIB
    ]
    assert wrong == []


def test_every_layer_stands_in_the_table() -> None:
    assert {layer_of(file) for file in FILES} - {"__init__"} <= MAY_IMPORT.keys()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import ctxproxy.proxy.app", ["ctxproxy.proxy.app"]),
        ("from ctxproxy import wiring", ["ctxproxy.wiring"]),
        ("from ctxproxy.core.sse import read", ["ctxproxy.core.sse"]),
        ("def f():\n    import time", ["time"]),
        ("if True:\n    from asyncio import run", ["asyncio"]),
    ],
)
def test_imports_are_seen_wherever_they_stand(source: str, names: list[str]) -> None:
    assert list(imported(ast.parse(source))) == names
