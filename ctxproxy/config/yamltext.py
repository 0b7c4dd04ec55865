"""Reads YAML as configuration wants it: safe, one document, no key twice, and the scalars of YAML 1.2's core schema.

YAML 1.1 reads `off` as false, `1:30` as 90 and `2024-01-01` as a date; here they are the texts that they look like
(YAML 1.2.2 §10.3.2).
"""

from __future__ import annotations

import re

import yaml

_MAX_DEPTH = 50
"""Deeper than any setting goes; a structure that holds itself is found by it."""


class YamlProblem(ValueError):
    """What is wrong with a YAML text, with its line; it never quotes the text, which may hold a secret."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without YAML 1.1's surprises."""

    yaml_implicit_resolvers = {}

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[object, object]:
        if isinstance(node, yaml.MappingNode):
            _refuse_twice(node)
        return super().construct_mapping(node, deep=deep)  # type: ignore[arg-type]


def _refuse_twice(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if key.value in seen:
                raise YamlProblem(f"line {key.start_mark.line + 1}: the key {key.value!r} stands there twice")
            seen.add(key.value)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+(?:_[0-9]+)*|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def _decimal(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    return int(text, 16) if text.startswith("0x") else int(text)


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(re.sub(r"\.(inf|nan)$", r"\1", loader.construct_scalar(node).lower()))


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)


def parse(text: str) -> object:
    """The value of a YAML text, None if it is empty; raises YamlProblem."""
    try:
        value: object = yaml.load(text, _Loader)  # noqa: S506 - derived from SafeLoader
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise YamlProblem(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError:
        raise YamlProblem("it holds a character that YAML does not allow") from None
    except RecursionError:
        raise YamlProblem("it is nested too deeply") from None
    _refuse_deep(value, _MAX_DEPTH)
    return value


def _refuse_deep(value: object, left: int) -> None:
    if left == 0:
        raise YamlProblem("it is nested too deeply, or holds itself")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        _refuse_deep(item, left - 1)
