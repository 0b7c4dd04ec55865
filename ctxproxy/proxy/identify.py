"""Who asks, in which session, under which policy: read from headers and settings, before any I/O."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from ctxproxy.config.policies import choose
from ctxproxy.config.schema import Settings
from ctxproxy.core import headers
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import SessionKey
from ctxproxy.core.sessions import Mode, derived_name, tenant_of
from ctxproxy.core.wire import ChatRequest
from ctxproxy.errors import BadRequest

PRESET_HEADER = "X-Context-Preset"
MODE_HEADER = "X-Context-Mode"
BYPASS_HEADER = "X-Context-Bypass"
CREDENTIAL_HEADERS = ("Authorization", "api-key", "x-api-key", "x-goog-api-key")
"""Where clients put their key: OpenAI's way, Azure's, Anthropic's, Google's."""


@lru_cache(maxsize=256)
def origin_of(base_url: str) -> str:
    """Scheme, host and port of a base URL; "demo" for the built-in model."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else base_url


class Target(msgspec.Struct, frozen=True):
    """Where a request goes, and with which key if it brings none."""

    base_url: str
    api_key: str

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a credential is good for."""
        return origin_of(self.base_url)


class Caller(msgspec.Struct, frozen=True):
    """A request's session and policy; `key` None: it has no session and nothing is remembered."""

    target: Target
    key: SessionKey | None
    named: bool
    mode: Mode
    profile: str
    policy: Policy
    arm: str
    """The arm of the experiment that chose the policy; "" if none did."""
    retried: bool
    """The client says that it sends this request again (its answer was lost)."""
    user: str = ""
    """`X-User-Id`; "" if it has none."""


def own_headers(settings: Settings) -> tuple[str, ...]:
    """The request headers that are for us alone and never go upstream."""
    return (settings.sessions.header, settings.sessions.user_header, MODE_HEADER, PRESET_HEADER, BYPASS_HEADER)


def target_for(settings: Settings, model: str) -> Target:
    """The first route whose pattern matches the model, else the upstream itself."""
    upstream = settings.upstream
    for route in upstream.routes:
        if fnmatchcase(model, route.match):
            base_url = route.base_url or upstream.base_url
            inherited = upstream.api_key if origin_of(base_url) == origin_of(upstream.base_url) else ""  # a key is good for one origin
            return Target(base_url, route.api_key or inherited)
    return Target(upstream.base_url, upstream.api_key)


def bypassed(request: web.Request) -> bool:
    """Whether the client wants this request forwarded as it is, with nothing recorded."""
    return headers.flag(request.headers.getall(BYPASS_HEADER, []), BYPASS_HEADER)


def identify(request: web.Request, chat: ChatRequest, settings: Settings, secret: bytes) -> Caller:
    """The caller of a chat completion; raises BadRequest for a header value that breaks a rule."""
    target = target_for(settings, chat.model)
    given = headers.session_name(request.headers.getall(settings.sessions.header, []), settings.sessions.header)
    user = headers.session_name(request.headers.getall(settings.sessions.user_header, []), settings.sessions.user_header)
    name = given or (derived_name(chat.messages) if settings.sessions.derive else None)
    tenant = tenant_of(secret, credential_of(request, target), target.origin, shared=settings.sessions.scope == "shared")
    profile = request.headers.get(PRESET_HEADER, "").strip()
    mode = headers.mode(request.headers.getall(MODE_HEADER, []), MODE_HEADER) or settings.sessions.mode
    if mode == "append" and given is None:
        name_it = f"mode append needs {settings.sessions.header}: without a name each request would begin a session of its own"
        raise BadRequest(name_it, param=settings.sessions.header)
    key = SessionKey(tenant, name) if name else None
    choice = choose(settings, profile or None, chat.model, key)
    return Caller(
        target=target,
        key=key,
        named=given is not None,
        mode=mode,
        profile=profile,
        policy=choice.policy,
        arm=choice.arm,
        retried=request.headers.get("X-Stainless-Retry-Count", "0").strip() not in ("", "0"),
        user=user or "",
    )


def credentials_of(request: web.Request, target: Target) -> list[tuple[str, str]]:
    """The headers that hold a request's credential, for calls of our own on its behalf; the configured key if it brings none."""
    given = [(name, request.headers[name]) for name in CREDENTIAL_HEADERS if request.headers.get(name)]
    return given or ([("Authorization", f"Bearer {target.api_key}")] if target.api_key else [])


def credential_of(request: web.Request, target: Target) -> str:
    """The credential a request is sent with: its own, else the configured key."""
    return next((request.headers[name] for name in CREDENTIAL_HEADERS if request.headers.get(name)), target.api_key)
