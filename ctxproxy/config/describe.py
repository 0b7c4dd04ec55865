"""Says in words what a key may hold; the reference and every error message use the same words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

from ctxproxy.config.schema import Keys


@dataclass(frozen=True, slots=True)
class Row:
    """A key: its dotted path (`[]` marks a list's entries), its type in words, its default as YAML would write it."""

    path: str
    kind: str
    default: str


def keys_of(section: type[msgspec.Struct]) -> dict[str, object]:
    """The keys of a section with their annotations."""
    hints = get_type_hints(section, include_extras=True)
    return {name: hints[name] for name in section.__struct_fields__}


def section_of(kind: object) -> type[msgspec.Struct] | None:
    """The section that a key is, if it is one."""
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def entry_of(kind: object) -> type[msgspec.Struct] | None:
    """The section that each entry of a list is, if the key is such a list."""
    return section_of(get_args(kind)[0]) if get_origin(kind) is tuple else None


def is_mapping(kind: object) -> bool:
    """Whether the key holds names of the user's own."""
    return get_origin(kind) is Mapping


def rows(section: type[msgspec.Struct] = Keys, prefix: str = "") -> list[Row]:
    """Every key there is, in the order of the schema."""
    found = []
    for field in msgspec.structs.fields(section):
        path, kind = prefix + field.name, keys_of(section)[field.name]
        if inner := section_of(kind):
            found += rows(inner, path + ".")
            continue
        found.append(Row(path, words(kind), written(field.default)))
        if entry := entry_of(kind):
            found += rows(entry, path + "[].")
    return found


def written(value: object) -> str:
    """A default as YAML writes it."""
    if value is msgspec.NODEFAULT:
        return "required"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, tuple):
        return "[]"
    return f"{value:g}" if isinstance(value, float) else str(value) or '""'


def words(kind: object) -> str:
    """A type in words: `whole number from 1 | auto`."""
    if is_mapping(kind):
        return "names with context keys"
    return _words(inspect.type_info(kind))


_SIMPLE: Mapping[type[inspect.Type], str] = MappingProxyType(
    {inspect.BoolType: "true | false", inspect.NoneType: "null", inspect.VarTupleType: "list"}
)


def _words(node: inspect.Type) -> str:
    if isinstance(node, inspect.Metadata):
        return " | ".join((node.extra_json_schema or {}).get("examples", [])) or _words(node.type)
    if isinstance(node, inspect.UnionType):
        return " | ".join(sorted(map(_words, node.types), key=lambda word: word == "null"))
    if isinstance(node, inspect.LiteralType):
        return " | ".join(sorted(map(str, node.values)))
    if isinstance(node, inspect.IntType | inspect.FloatType):
        return ("whole number" if isinstance(node, inspect.IntType) else "number") + _bounds(node)
    if isinstance(node, inspect.StrType) and node.pattern:
        return "header name"
    return _SIMPLE.get(type(node), "text")


def _bounds(node: inspect.IntType | inspect.FloatType) -> str:
    low = f" above {node.gt:g}" if node.gt is not None else f" from {node.ge:g}" if node.ge is not None else ""
    return low + (f" to {node.le:g}" if node.le is not None else "")


def named(value: object) -> str:
    """What somebody wrote, short, for a message."""
    if isinstance(value, dict | list):
        return "keys and values" if isinstance(value, dict) else "a list"
    text = written(value) if value is None or isinstance(value, bool | int | float) else repr(str(value))
    return text if len(text) <= 60 else text[:59] + "…"


def literals(kind: object) -> list[str]:
    """The fixed texts that a key may hold."""
    found = [arg for arg in get_args(kind) if isinstance(arg, str)]
    if isinstance(kind, msgspec.Meta):
        found += kind.examples or []
    return found + [text for arg in get_args(kind) if not isinstance(arg, str | NoneType) for text in literals(arg)]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like this one, None if none does."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def nearest_key(path: str, siblings: Sequence[str]) -> str:
    """A hint for a key that is not there: the nearest beside it, else the same name elsewhere, else the names beside it."""
    head, _, name = path.rpartition(".")
    prefix = f"{head}." if head else ""
    every = [row.path for row in rows()]
    elsewhere = [known for known in every if known.rpartition(".")[2] == name and "[]" not in known]
    if close := nearest(name, siblings):
        return f"did you mean {prefix}{close}?"
    if elsewhere:
        return f"did you mean {' or '.join(elsewhere[:3])}?"
    if close := nearest(path, every):
        return f"did you mean {close}?"
    return f"known here: {', '.join(siblings)}"
