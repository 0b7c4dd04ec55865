"""Reads the settings of the layered memory manager (003-42) as ours: each key is mapped, or told that it has no counterpart here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ctxproxy.config import describe
from ctxproxy.config.schema import Keys
from ctxproxy.errors import ConfigError

Tree = dict[str, object]
VECTOR_DATABASES = ("chroma", "faiss", "milvus", "pgvector", "pinecone", "qdrant", "weaviate")
STORES = {"sqlite": "", "postgresql": "db_type: PostgreSQL is no store of this version; store.url decides, which is a SQLite file by default"}
STRATEGIES = {"hybrid": "layered"}
PLAIN_NOTES: Mapping[str, str] = MappingProxyType(
    {
        "similarity_threshold": "it has no counterpart: retrieval.min_score is on another scale and stays at its default",
        "backup_interval": "not needed: what was answered is on disk before the answer's end goes out",
        "max_connections": "not needed: a SQLite file has no connection pool",
        "min_context_length": "preset layered begins at 1,000 tokens; another number is `min_tokens` of rolling_summary in context.pipeline",
    }
)
"""What is told of keys that nothing comes of."""


@dataclass(slots=True)
class Translation:
    """Our keys, and what has to be told."""

    tree: Tree
    notes: list[str] = field(default_factory=list)

    def put(self, section: str, key: str, value: object) -> None:
        """Set a key of ours, unless the file sets it itself."""
        keys = self.tree.setdefault(section, {})
        if isinstance(keys, dict):
            keys.setdefault(key, value)


Take = Callable[[Translation, str, object], None]


def translated(tree: Mapping[str, object]) -> Translation:
    """The tree without those keys, at its top or in sections that hold nothing else; raises ConfigError for a back end that is none."""
    result = Translation({})
    found: Tree = {}
    for key, value in tree.items():
        theirs = key not in Keys.__struct_fields__ and _leaves(key, value)
        if theirs and theirs.keys() <= TAKEN.keys():
            found |= theirs
        else:
            result.tree[key] = value
    for key, value in found.items():
        TAKEN[key](result, key, value)
    return result


def _leaves(key: str, value: object) -> Tree:
    if not isinstance(value, Mapping):
        return {key: value}
    return {name: leaf for inner, held in value.items() for name, leaf in _leaves(str(inner), held).items()}


def _keep_turns(result: Translation, key: str, value: object) -> None:
    result.put("context", "keep_recent_turns", value)


def _top_k(result: Translation, key: str, value: object) -> None:
    result.put("retrieval", "top_k", value)


def _noted(result: Translation, key: str, value: object) -> None:
    result.notes.append(f"{key}: {PLAIN_NOTES[key]}")


def _vector_database(result: Translation, key: str, value: object) -> None:
    _known(key, value, VECTOR_DATABASES)
    result.notes.append(f"{key}: not needed: what was said is indexed in the store itself")


def _store(result: Translation, key: str, value: object) -> None:
    note = STORES[_known(key, value, STORES)]
    result.notes += [note] if note else []


def _enabled(result: Translation, key: str, value: object) -> None:
    if value is False:
        result.put("context", "preset", "off")


def _strategy(result: Translation, key: str, value: object) -> None:
    result.put("context", "preset", STRATEGIES[_known(key, value, STRATEGIES)])


def _known(key: str, value: object, names: Mapping[str, str] | tuple[str, ...]) -> str:
    name = str(value).lower()
    if name not in names:
        raise ConfigError(f"{key}: there is no {describe.named(value)} here; known are {', '.join(names)}", param=key)
    return name


TAKEN: Mapping[str, Take] = MappingProxyType(
    {
        "working_memory_size": _keep_turns,
        "top_k": _top_k,
        "vector_db": _vector_database,
        "db_type": _store,
        "enable": _enabled,
        "strategy": _strategy,
        **dict.fromkeys(PLAIN_NOTES, _noted),
    }
)
"""Their keys, whatever section they stand in."""
