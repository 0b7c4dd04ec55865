"""From a tree of plain values to the settings' own: unknown keys, types and ranges, each fault with the path of its key.

All faults are gathered, so that one look at the message mends the whole file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from ctxproxy.config import describe
from ctxproxy.config.environment import Expanded, Text
from ctxproxy.config.schema import SECRETS
from ctxproxy.config.unavailable import missing_feature
from ctxproxy.errors import ConfigError

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(slots=True)
class Faults:
    """What was found wrong so far: path of the key → reason."""

    sources: Mapping[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)

    def note(self, path: str, reason: str) -> None:
        """One more; the first reason for a key stands."""
        self.found.setdefault(path, reason)

    def stop(self) -> None:
        """Raise ConfigError if anything is wrong: a line for each key."""
        if self.found:
            lines = [f"{path}: {reason}{self._origin(path)}" for path, reason in self.found.items()]
            raise ConfigError("\n".join(lines), param=next(iter(self.found)))

    def _origin(self, path: str) -> str:
        above = [known for known in self.sources if path == known or path.startswith((f"{known}.", f"{known}["))]
        return f" (from {self.sources[max(above, key=len)]})" if above else ""


def build(section: type[S], tree: object, path: str, faults: Faults) -> S | None:
    """The section that a tree describes, None if anything in it is wrong (then it is in `faults`)."""
    before = len(faults.found)
    values = read_keys(section, tree, path, faults)
    for key in msgspec.structs.fields(section):
        if key.required and key.name not in values:
            faults.note(_join(path, key.name), "it is required")
    return section(**values) if len(faults.found) == before else None


def read_keys(section: type[msgspec.Struct], tree: object, path: str, faults: Faults) -> dict[str, object]:
    """The keys that a tree gives, read and checked; what is wrong goes to `faults`."""
    keys = tree.readings()[0] if isinstance(tree, Text) else tree
    if keys is None:
        return {}
    if not isinstance(keys, Mapping):
        faults.note(path, f"expected keys ({', '.join(section.__struct_fields__)}), not {_shown(tree)}")
        return {}
    known = describe.keys_of(section)
    values = {}
    for name, value in keys.items():
        here = _join(path, str(name))
        if name in known:
            values[name] = _read(known[name], value, here, faults)
        else:
            faults.note(here, f"there is no such key; {describe.nearest_key(here, list(known))}")
    return values


def _read(kind: object, value: object, path: str, faults: Faults) -> object:
    if section := describe.section_of(kind):
        return build(section, value, path, faults)
    if entry := describe.entry_of(kind):
        return _entries(entry, value, path, faults)
    return _scalar(kind, value, path, faults)


def _entries(entry: type[msgspec.Struct], value: object, path: str, faults: Faults) -> tuple[object, ...]:
    items = value.readings()[0] if isinstance(value, Text) else value
    if not isinstance(items, list | None):
        faults.note(path, f"expected a list, not {_shown(value)}")
    return tuple(build(entry, item, f"{path}[{n}]", faults) for n, item in enumerate(items if isinstance(items, list) else []))


def _scalar(kind: object, value: object, path: str, faults: Faults) -> object:
    secret = path.rpartition(".")[2] in SECRETS
    readings = _readings(value, secret=secret)
    for reading in readings:
        if feature := missing_feature(path, reading):
            faults.note(path, f"not available in this version: {feature}")
            return None
        try:
            return _converted(kind, reading)
        except msgspec.ValidationError:
            continue
    faults.note(path, _expected(kind, readings[0], shown=_shown(value, secret=secret)))
    return None


def _readings(value: object, *, secret: bool) -> tuple[object, ...]:
    if not isinstance(value, Text):
        return (_plain(value),)
    return (str(value) or None, str(value)) if secret else value.readings()


def _shown(value: object, *, secret: bool = False) -> str:
    """What was written, for a message: nothing that is or may be a credential."""
    if secret:
        return "a value of another kind (put it in quotes)"
    return "what the environment variable holds" if isinstance(value, Expanded) else describe.named(_plain(value))


def _converted(kind: object, value: object) -> object:
    if isinstance(value, float) and value - value != 0:  # infinite, or no number at all
        raise msgspec.ValidationError("not finite")
    return msgspec.convert(value, kind)


def _expected(kind: object, value: object, *, shown: str) -> str:
    reason = f"expected {describe.words(kind)}, not {shown}"
    close = describe.nearest(value, describe.literals(kind)) if isinstance(value, str) else None
    return f"{reason}; did you mean {close}?" if close else reason


def _plain(value: object) -> object:
    """A value with the texts inside it read as YAML would: what a `pipeline` holds has no types of ours."""
    if isinstance(value, Text):
        return value.readings()[0]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
