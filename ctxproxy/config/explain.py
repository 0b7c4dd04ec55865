"""Shows what is in force: every key with its value, and where it was set; no secret is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml

from ctxproxy.config.load import Loaded
from ctxproxy.config.schema import as_tree


def explain(loaded: Loaded) -> str:
    """The settings as YAML, each key that is not a default with its source."""
    tree = as_tree(loaded.settings)
    assert isinstance(tree, dict)
    notes = [f"# {note}" for note in loaded.settings.notes]
    return "\n".join([*_lines(tree, "", loaded.sources), *([""] if notes else []), *notes])


def _lines(tree: Mapping[str, object], path: str, sources: Mapping[str, str]) -> Iterator[str]:
    indent = "  " * (path.count(".") + 1 if path else 0)
    for key, value in tree.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, Mapping) and value and here not in sources:
            yield f"{indent}{key}:"
            yield from _lines(value, here, sources)
        else:
            source = f"  # from {sources[here]}" if here in sources else ""
            yield f"{indent}{key}: {_flow(value)}{source}"


def _flow(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10_000)
    return text.removesuffix("...\n").strip()
