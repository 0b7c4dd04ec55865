"""What a single key's type cannot say: rules between keys, addresses, credentials, pipelines."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ctxproxy.config import describe
from ctxproxy.config.build import Faults
from ctxproxy.config.schema import SECRETS, Context, Keys
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS, stages_of
from ctxproxy.core.urls import DEMO, check_base_url
from ctxproxy.errors import ConfigError


def check(settings: Keys, faults: Faults) -> None:
    """Note every rule that the settings break."""
    _context(settings.context, "context", faults)
    for name, profile in settings.profiles.items():
        if not faults.found:  # else a profile that inherits the fault repeats it
            _context(profile, f"profiles.{name}", faults)
        if name in PRESETS:
            faults.note(f"profiles.{name}", "a preset has this name; take another")
    for path, url in _addresses(settings):
        _address(url, path, faults)
    for n, route in enumerate(settings.upstream.routes):
        if route.profile is not None and route.profile not in (known := (*settings.profiles, *PRESETS)):
            faults.note(f"upstream.routes[{n}].profile", f"there is no profile or preset {route.profile!r}; known are {', '.join(known)}")
    if settings.sessions.header.lower() == settings.sessions.user_header.lower():
        faults.note("sessions.user_header", "it must be another header than sessions.header")
    if not re.fullmatch(r"memory://|sqlite:///[^?#]+", settings.store.url):
        faults.note("store.url", "expected memory:// or sqlite:///path")
    _secrets(settings, "", faults)


def _context(context: Context, path: str, faults: Faults) -> None:
    if context.target >= context.compact_at:
        faults.note(f"{path}.target", f"{context.target:g} must be below {path}.compact_at, which is {context.compact_at:g}")
    if context.pipeline is not None:
        _pipeline(context, f"{path}.pipeline", faults)


def _pipeline(policy: Policy, path: str, faults: Faults) -> None:
    try:
        stages_of(policy)
    except ValueError as error:
        faults.note(path, str(error))


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
