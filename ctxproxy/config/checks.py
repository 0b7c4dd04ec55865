"""What a single key's type cannot say: rules between keys, addresses, credentials, pipelines."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from zoneinfo import ZoneInfo

import msgspec

from ctxproxy.config import describe
from ctxproxy.config.build import Faults
from ctxproxy.config.schema import SECRETS, Context, Experiment, Keys, Retrieval
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS, stages_of
from ctxproxy.core.urls import DEMO, check_base_url
from ctxproxy.errors import ConfigError


def check(settings: Keys, faults: Faults) -> None:
    """Note every rule that the settings break."""
    check_context(settings.context, "context", faults)
    for name, profile in settings.profiles.items():
        if not faults.found:  # else a profile that inherits the fault repeats it
            check_context(profile, f"profiles.{name}", faults)
        if name in PRESETS:
            faults.note(f"profiles.{name}", "a preset has this name; take another")
    for path, url in _addresses(settings):
        _address(url, path, faults)
    known = (*settings.profiles, *PRESETS)
    for path, name in _references(settings):
        if name not in known:
            faults.note(path, f"there is no profile or preset {name!r}; known are {', '.join(known)}")
    _experiment(settings.experiment, faults)
    if settings.sessions.header.lower() == settings.sessions.user_header.lower():
        faults.note("sessions.user_header", "it must be another header than sessions.header")
    if not re.fullmatch(r"memory://|sqlite:///[^?#]+", settings.store.url):
        faults.note("store.url", "expected memory:// or sqlite:///path")
    if settings.listen.workers > 1 and settings.store.url == "memory://":
        faults.note("listen.workers", "several workers cannot share memory://, each would have sessions of its own; take store.url sqlite:///path")
    _timezone(settings.memory.timezone, faults)
    _retrieval(settings.retrieval, faults)
    _secrets(settings, "", faults)


def _timezone(name: str, faults: Faults) -> None:
    if name in ("local", "UTC"):
        return
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        faults.note("memory.timezone", f"there is no time zone {describe.named(name)} here; expected local, UTC or a name like Asia/Shanghai")


def _retrieval(retrieval: Retrieval, faults: Faults) -> None:
    """An embedder that is asked for must be there; `auto` beside words may do without."""
    if retrieval.kind not in ("dense", "hybrid"):
        return
    asked = "retrieval.embedder" if retrieval.embedder != "auto" else "retrieval.kind" if retrieval.kind == "dense" else ""
    if asked and (missing := missing_package(retrieval.embedder)):
        faults.note(asked, f"it needs the package {missing}; install it: {sys.executable} -m pip install {missing}")
    if retrieval.embedder == "upstream" and retrieval.embedding_model is None:
        faults.note("retrieval.embedding_model", "name the model that /v1/embeddings of the upstream is asked for, like text-embedding-3-small")


def missing_package(embedder: str) -> str | None:
    """The package that an embedder needs and that is not installed (extra `semantic`); None if there is all that it needs."""
    needed = "numpy" if embedder == "upstream" else "wordllama"
    return None if find_spec(needed) else needed


def check_context(context: Context, path: str, faults: Faults) -> None:
    """Note every rule between the keys of a context that it breaks."""
    if context.target > context.compact_at:
        faults.note(f"{path}.target", f"{context.target:g} must not be above {path}.compact_at, which is {context.compact_at:g}")
    if context.pipeline is not None:
        _pipeline(context, f"{path}.pipeline", faults)


def _pipeline(policy: Policy, path: str, faults: Faults) -> None:
    if any(known.startswith(f"{path}[") for known in faults.found):
        return  # a stage of the user's own cannot be had: the reason is noted, and its options cannot be checked
    try:
        stages_of(policy)
    except ValueError as error:
        faults.note(path, str(error))


def _references(settings: Keys) -> Iterable[tuple[str, str]]:
    """Where a profile or preset is named, and which."""
    for n, route in enumerate(settings.upstream.routes):
        if route.profile is not None:
            yield f"upstream.routes[{n}].profile", route.profile
    for n, entry in enumerate(settings.sessions.profiles):
        yield f"sessions.profiles[{n}].profile", entry.profile
    for n, arm in enumerate(settings.experiment.arms):
        yield f"experiment.arms[{n}].profile", arm.profile


def _experiment(experiment: Experiment, faults: Faults) -> None:
    names = [arm.profile for arm in experiment.arms]
    for n, name in enumerate(names):
        if not re.fullmatch(r"[!-~]+", name):
            faults.note(f"experiment.arms[{n}].profile", "an arm is named in a header: visible ASCII characters only, no blanks")
        if name in names[:n]:
            faults.note(f"experiment.arms[{n}].profile", f"{name!r} is an arm already; give its profile another name to compare it with itself")
    if (total := math.fsum(arm.share for arm in experiment.arms)) > 100:
        faults.note("experiment.arms", f"the shares are percentages and add up to {total:g}, more than 100")


def _addresses(settings: Keys) -> Iterable[tuple[str, str]]:
    yield "upstream.base_url", settings.upstream.base_url
    yield "summarizer.base_url", settings.summarizer.base_url or DEMO
    for n, route in enumerate(settings.upstream.routes):
        yield f"upstream.routes[{n}].base_url", route.base_url or DEMO


def _address(url: str, path: str, faults: Faults) -> None:
    try:
        check_base_url(url)
    except ConfigError as error:
        # what does not look like an address is not repeated: keys and addresses get mixed up
        faults.note(path, error.message if "://" in url else "expected an address like https://api.openai.com/v1, or demo")


def _secrets(value: object, path: str, faults: Faults) -> None:
    """Credentials travel in headers: a line end or a blank in one is a slip of a copy, found here and not at the first request."""
    if isinstance(value, tuple):
        for n, item in enumerate(value):
            _secrets(item, f"{path}[{n}]", faults)
    if not isinstance(value, msgspec.Struct):
        return
    for name in describe.keys_of(type(value)):
        here, item = f"{path}.{name}" if path else name, getattr(value, name)
        if name in SECRETS and not all("!" <= letter <= "~" for letter in item or ""):
            faults.note(here, "it holds a blank, a line end or a character outside ASCII, which a header cannot carry")
        _secrets(item, here, faults)
