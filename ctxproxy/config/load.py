"""Where the settings come from: command line, environment, file, defaults, in this order of precedence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ctxproxy.config import describe, environment, yamltext
from ctxproxy.config.build import Faults, build, read_keys
from ctxproxy.config.checks import check
from ctxproxy.config.layered_names import translated
from ctxproxy.config.own_parts import load_own
from ctxproxy.config.policies import from_preset, resolved
from ctxproxy.config.schema import Context, Keys, Settings
from ctxproxy.errors import ConfigError

DEFAULT_FILE = "config.yaml"
ALIASES: Mapping[str, str] = MappingProxyType(
    {"agent_max_context_tokens": "max_tokens", "agent_max_context_turns": "max_turns", "agent_max_steps": "max_steps"}
)
"""Other names of keys of `context`."""

Tree = dict[str, object]

FROM_ENVIRONMENT: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"upstream": {"api_key": "${OPENAI_API_KEY:-}"}, "admin": {"token": "${CTXPROXY_ADMIN_TOKEN:-}"}}
)
"""The defaults that are read from the environment."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, and for each key that was set anywhere or is a preset's default, where it comes from."""

    settings: Settings
    sources: Mapping[str, str]


def load(path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Settings:
    """The settings; `path` None reads ./config.yaml if it is there, `overrides` are dotted keys; raises ConfigError naming every fault."""
    return read(path, environ, overrides).settings


def read(path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Loaded:
    """As `load`, with the source of each key."""
    file = path if path is not None else Path(DEFAULT_FILE)
    text = _text(file) if path is not None or file.exists() else ""
    raw = _parsed(text, file)
    allowed = {*environment.references(raw), *environment.references(FROM_ENVIRONMENT)}
    theirs = translated(_expanded(raw, environ, ""))
    tree: Tree = {}
    sources: dict[str, str] = {}
    layers: list[tuple[str, Tree]] = [
        ("", _expanded(FROM_ENVIRONMENT, environ, "")),
        (str(file), _own_names(theirs.tree, str(file))),
        *_variables(environ, allowed),
        *(("the command line", _nested(key, value)) for key, value in overrides.items() if value is not None),
    ]
    for source, layer in layers:
        tree = _merged(tree, layer)
        sources.update((leaf, source) for leaf in _leaves(layer) if source)
    origin = file if path is not None or text else None
    return _loaded(tree, sources, origin, overrides, tuple(theirs.notes))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: it is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{file}: it cannot be read: {error.strerror}") from None


def _parsed(text: str, file: Path) -> Tree:
    try:
        tree = yamltext.parse(text)
    except yamltext.YamlProblem as problem:
        raise ConfigError(f"{file}: {problem}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{file}: expected keys and values, not {'a list' if isinstance(tree, list) else 'a single value'}")
    return tree


def _expanded(tree: Mapping[str, object], environ: Mapping[str, str], path: str) -> Tree:
    return {key: _expanded_value(value, environ, f"{path}.{key}" if path else str(key)) for key, value in tree.items()}


def _expanded_value(value: object, environ: Mapping[str, str], path: str) -> object:
    if isinstance(value, Mapping):
        return _expanded(value, environ, path)
    if isinstance(value, list):
        return [_expanded_value(item, environ, f"{path}[{n}]") for n, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    try:
        return environment.Expanded(environment.expand(value, environ))
    except ValueError as error:
        raise ConfigError(f"{path}: {error}", param=path) from None


def _variables(environ: Mapping[str, str], allowed: set[str]) -> Iterator[tuple[str, Tree]]:
    """A layer for each variable that sets something, sections before the keys in them."""
    names = {name for name in environ if name.startswith(environment.PREFIX) and not name.startswith(environment.TEST_PREFIX)}
    for name in sorted(names, key=lambda name: (name.count("__"), name)):
        path = environment.path_of(name)
        kind = _kind_of(path)
        if kind is not None:
            yield name, _own_names(_nested(path, _variable_value(kind, environ[name], path, name)), name)
        elif name not in allowed:
            close = describe.nearest(path, [row.path for row in describe.rows() if "[]" not in row.path])
            hint = f"did you mean {environment.variable_of(close)}?" if close else "settings are named CTXPROXY_<SECTION>__<KEY>"
            raise ConfigError(f"{name}: there is no such setting; {hint}", param=name)


def _kind_of(path: str) -> object | None:
    """The annotation of a key, None if there is no such key."""
    if path in ALIASES:
        return object
    kind: object = Keys
    for name in path.split("."):
        if describe.is_mapping(kind) and name:
            kind = Context
        elif section := describe.section_of(kind):
            kind = describe.keys_of(section).get(name)
        else:
            return None
    return kind


def _variable_value(kind: object, text: str, path: str, name: str) -> object:
    if not (describe.section_of(kind) or describe.is_mapping(kind)):
        return environment.Text(text)
    try:
        tree = yamltext.parse(text)
    except yamltext.YamlProblem as problem:
        raise ConfigError(f"{path}: {problem} (from {name})", param=path) from None
    return tree


def _nested(path: str, value: object) -> Tree:
    head, _, rest = path.partition(".")
    return {head: _nested(rest, value) if rest else value}


def _own_names(tree: Tree, source: str) -> Tree:
    """The tree with aliases replaced by the keys that they mean, at the top, in `context` and in profiles."""
    outer = {key: value for key, value in tree.items() if key not in ALIASES}
    moved = {key: value for key, value in tree.items() if key in ALIASES}
    context = outer.get("context")
    if isinstance(context, dict) or (moved and context is None):
        outer["context"] = _renamed({**(context or {}), **moved}, source)
    profiles = outer.get("profiles")
    if isinstance(profiles, dict):
        outer["profiles"] = {name: _renamed(keys, source) if isinstance(keys, dict) else keys for name, keys in profiles.items()}
    return outer


def _renamed(context: Tree, source: str) -> Tree:
    for alias, name in ALIASES.items():
        if alias in context and name in context:
            raise ConfigError(f"context.{name}: it is set twice, also as {alias} (from {source})", param=f"context.{name}")
    return {ALIASES.get(key, key): value for key, value in context.items()}


def _merged(below: Tree, above: Tree) -> Tree:
    """Both trees; where both have a key, the upper one's value, section by section."""
    result = dict(below)
    for key, value in above.items():
        under = below.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            result[key] = _merged(under, value)
        elif not (value is None and isinstance(under, dict)):
            result[key] = value
    return result


def _leaves(tree: Tree, path: str = "") -> Iterator[str]:
    for key, value in tree.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict) and value:
            yield from _leaves(value, here)
        else:
            yield here


def _loaded(tree: Tree, sources: Mapping[str, str], origin: Path | None, overrides: Mapping[str, object], notes: tuple[str, ...]) -> Loaded:
    faults = Faults(sources)
    keys = build(Keys, {key: value for key, value in tree.items() if key != "profiles"}, "", faults)
    profiles = _profiles(tree.get("profiles"), faults)
    faults.stop()
    assert keys is not None
    explicit = read_keys(Context, tree.get("context"), "context", faults)
    settings = Settings(
        **{
            **{name: getattr(keys, name) for name in Keys.__struct_fields__},
            "context": resolved(explicit, {}),
            "profiles": MappingProxyType({name: resolved(explicit, changes) for name, changes in profiles.items()}),
        },
        origin=origin,
        overrides=MappingProxyType(dict(overrides)),
        explicit=MappingProxyType(explicit),
        notes=notes,
        restores_as_set="sessions.restore_turns" in sources,
        profile_keys=MappingProxyType(profiles),
    )
    whence = {**_preset_sources(explicit, profiles), **sources}
    faults = Faults(whence)
    load_own(settings, origin, faults)
    check(settings, faults)
    faults.stop()
    return Loaded(settings, MappingProxyType(whence))


def _profiles(tree: object, faults: Faults) -> dict[str, dict[str, object]]:
    """The keys that each profile sets."""
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        faults.note("profiles", f"expected names with context keys, not {describe.named(tree)}")
        return {}
    return {str(name): read_keys(Context, keys, f"profiles.{name}", faults) for name, keys in tree.items()}


def _preset_sources(explicit: Mapping[str, object], profiles: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """For each key that has its value from a preset, which one."""
    sections = {"context": {}, **{f"profiles.{name}": changes for name, changes in profiles.items()}}
    return {f"{path}.{key}": f"preset {preset}" for path, changes in sections.items() for key, preset in from_preset(explicit, changes).items()}
