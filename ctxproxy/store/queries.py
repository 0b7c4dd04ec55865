"""The SQL of the stores: named queries and numbered migrations, read from the package's `.sql` files."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from operator import itemgetter
from typing import NamedTuple

_NAMED = re.compile(r":(\w+)")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, forward only: `version` is its number, from 1 on without gaps."""

    version: int
    statements: tuple[str, ...]


class Placed(NamedTuple):
    """A query whose parameters are bound by their places, which takes half as long as by their names, and how to put values in their order."""

    text: str
    in_order: Callable[[Mapping[str, object]], Sequence[object]]


def placed(query: str) -> Placed:
    """A query with named parameters, in the form that is carried out quickly."""
    names: dict[str, int] = {}
    text = _NAMED.sub(lambda found: f"?{names.setdefault(found[1], len(names) + 1)}", query)
    return Placed(text, itemgetter(*names) if len(names) > 1 else lambda values: [values[name] for name in names])


def named_queries(file: str) -> Mapping[str, str]:
    """The queries of `sql/<file>` by the name in the `-- name: …` line above each."""
    text = files("ctxproxy.store").joinpath("sql", file).read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)
    return {name: _code(query) for name, query in zip(parts[1::2], parts[2::2], strict=True)}


def migrations() -> tuple[Migration, ...]:
    """All migrations, `migrations/NNNN_*.sql`, oldest first."""
    found = [file for file in files("ctxproxy.store").joinpath("migrations").iterdir() if file.name.endswith(".sql")]
    steps = [Migration(int(file.name[:4]), tuple(_statements(file.read_text("utf-8")))) for file in found]
    return tuple(sorted(steps, key=lambda step: step.version))


def _code(query: str) -> str:
    return "\n".join(line for line in query.splitlines() if not line.startswith("--")).strip()


def _statements(script: str) -> list[str]:
    """One by one, since `executescript` would commit the transaction that a migration runs in."""
    found, statement = [], ""
    for line in _code(script).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement.strip())
            statement = ""
    return found
