"""What the environment says: `${NAME}` inside values, and variables that are settings themselves (`CTXPROXY_<SECTION>__<KEY>`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ctxproxy.config import yamltext

PREFIX = "CTXPROXY_"
TEST_PREFIX = "CTXPROXY_TEST_"
"""Variables that steer the project's own tests; they are no settings."""

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?")


class Text(str):
    """Text whose type the key decides, `8080` being a number for a port and a text for a name: the value of a `CTXPROXY_` variable."""

    __slots__ = ()

    def readings(self) -> tuple[object, ...]:
        """What it may mean, the likeliest first: what YAML reads, then the text as it is."""
        parsed = _parsed(self)
        return (parsed,) if isinstance(parsed, str) else (parsed, str(self))


class Expanded(Text):
    """What came out of `${NAME}`: text is literally what the variable holds, quotes and all."""

    __slots__ = ()

    def readings(self) -> tuple[object, ...]:
        parsed = _parsed(self)
        return (str(self),) if isinstance(parsed, str) else (parsed, str(self))


def _parsed(text: Text) -> object:
    try:
        return yamltext.parse(str(text))
    except yamltext.YamlProblem:
        return str(text)


def expand(text: str, environ: Mapping[str, str]) -> str:
    """The text with `${NAME}` and `${NAME:-default}` filled in (a default stands in for an empty value, too) and `$${` as `${`.

    Raises ValueError that names the variable and never a value.
    """

    def fill(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        name, default = found["name"], found["default"]
        if name is None:
            raise ValueError("${ begins a reference to the environment: write ${NAME} or ${NAME:-default}, or $${ for the characters themselves")
        value = environ.get(name, "") or default
        if value is None and name not in environ:
            raise ValueError(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
        return value or ""

    return _REFERENCE.sub(fill, text)


def references(value: object) -> Iterator[str]:
    """The names of the variables that a tree of values refers to."""
    if isinstance(value, str):
        yield from (found["name"] for found in _REFERENCE.finditer(value) if found["name"])
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def variable_of(path: str) -> str:
    """The variable that sets a key: `context.max_tokens` → `CTXPROXY_CONTEXT__MAX_TOKENS`."""
    return PREFIX + path.upper().replace(".", "__")


def path_of(variable: str) -> str:
    """The key that a variable sets, `CTXPROXY_CONTEXT__MAX_TOKENS` → `context.max_tokens`; whether there is such a key is another question."""
    return variable.removeprefix(PREFIX).lower().replace("__", ".")
