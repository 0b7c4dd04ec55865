"""The settings as frozen values: every key of `config.yaml`, its type and its default.

Knows nothing of files or the environment. Constraints that one key can break alone are in its type; those between keys are in `checks`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

import msgspec

from ctxproxy.core.policy import Count, Policy, Recovery, SummarizerPolicy, Tokens

MASK = "********"
SECRETS = frozenset({"api_key", "token"})
"""The names of the keys whose values are shown to nobody."""

Port: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
HeaderName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
"""A token, as field names are (RFC 9110 §5.1)."""
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
SummarizerKind: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^(llm|extractive|off|[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_]\w*)$", examples=["extractive", "llm", "off", "module:function"]),
]
"""Who writes summaries: one of three, or a function of the user's own by its import path."""
Encoding: TypeAlias = Literal["o200k_base", "cl100k_base"]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the settings; its repr holds no secret."""

    def __repr__(self) -> str:
        return _masked_repr(self)


class Listen(Section, frozen=True):
    """Where the proxy listens; port 0 takes a free one."""

    host: Name = "127.0.0.1"
    port: Port = 8787
    workers: Count = 1
    max_body_mb: Annotated[float, msgspec.Meta(gt=0.0)] = 64.0


class Route(Section, frozen=True):
    """Another upstream, or other context keys, for the models whose name matches; what it leaves empty is the upstream's."""

    match: Name
    base_url: str = ""
    api_key: str = ""
    profile: str | None = None


class UpstreamSettings(Section, frozen=True):
    """Where requests go; `api_key` is used only when a request brings no credential, and is empty when there is none."""

    base_url: str = "https://api.openai.com/v1"
    api_key: str = ""
    connect_timeout_s: Seconds = 10.0
    first_byte_timeout_s: Seconds = 600.0
    idle_timeout_s: Seconds = 300.0
    on_disconnect: Literal["cancel", "drain"] = "cancel"
    routes: tuple[Route, ...] = ()


class SessionProfile(Section, frozen=True):
    """Other context keys for the sessions whose name matches."""

    match: Name
    profile: Name
    restore_turns: Count | Literal["all", "auto"] | None = None
    daily_files: bool = True


class Sessions(Section, frozen=True):
    """How requests are told apart and what is kept of them."""

    header: HeaderName = "X-Session-Id"
    user_header: HeaderName = "X-User-Id"
    mode: Literal["auto", "full", "append"] = "auto"
    derive: bool = True
    scope: Literal["credential", "shared"] = "credential"
    retention_days: Count | None = 30
    restore_turns: Count | Literal["all", "auto"] = "all"
    cache_mb: Whole = 64
    profiles: tuple[SessionProfile, ...] = ()


class Context(Policy, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a conversation is kept inside its budget: the core's policy, and what only the shell acts on."""

    report_usage: Literal["upstream", "logical"] = "upstream"
    recall_tool: bool = False


class Arm(Section, frozen=True):
    """A profile or preset, and the percentage of sessions that get it."""

    profile: Name
    share: Annotated[float, msgspec.Meta(gt=0.0, le=100.0)]


class Experiment(Section, frozen=True):
    """Profiles compared side by side: each session belongs to one arm for good, chosen by a digest of its key and this name."""

    name: str = ""
    arms: tuple[Arm, ...] = ()


class ModelEntry(Section, frozen=True):
    """What is known of the models whose name matches; None: to be learned."""

    match: Name
    window: Tokens | None = None
    encoding: Encoding | None = None


class Summarizer(SummarizerPolicy, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who writes summaries, and how; None: as the request itself has it."""

    kind: SummarizerKind = "llm"
    memory_points: bool = False

    @property
    def manner(self) -> Literal["llm", "extractive", "off"]:
        """How plans are made with it: with a function of the user's as with a model."""
        return "extractive" if self.kind == "extractive" else "off" if self.kind == "off" else "llm"

    def __repr__(self) -> str:
        return _masked_repr(self)


class Preload(Section, frozen=True):
    """How much of a known user's past a new session starts with."""

    sessions: Whole = 3
    chunks: Whole = 5


class Memory(Section, frozen=True):
    """What is remembered beyond one session."""

    daily_files: bool = True
    timezone: Name = "local"
    daily_text: Literal["summary", "events"] = "summary"
    distill: Literal["off", "daily", "manual"] = "off"
    facts: bool = True
    outcomes: bool = False
    preload: Preload = Preload()


class Retrieval(Section, frozen=True):
    """How removed parts of the past are found again for the newest request; `embedder` and `cache_mb` are looked at only at the start."""

    kind: Literal["off", "keyword", "dense", "hybrid"] = "hybrid"
    embedder: Literal["auto", "wordllama", "upstream"] = "auto"
    embedding_model: Name | None = None
    cache_mb: Whole = 64
    top_k: Count = 40
    min_score: float = 0.0
    max_tokens: Tokens = 2000


class Commands(Section, frozen=True):
    """Whether `/context` and its like in a user message are answered by the proxy."""

    enabled: bool = True


class StoreSettings(Section, frozen=True):
    """Where sessions are kept: `memory://` or `sqlite:///path`; three slashes lead to a path in `data_dir`, four to an absolute one."""

    url: Name = "sqlite:///ctxproxy.db"
    cache_mb: Whole = 32


class Admin(Section, frozen=True):
    """Who may call the admin API; an empty token means callers on this machine only."""

    token: str = ""


class Log(Section, frozen=True):
    """What is logged, to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class Keys(Section, frozen=True):
    """Everything that can be set, as INTERFACE §3 names it."""

    listen: Listen = Listen()
    upstream: UpstreamSettings = UpstreamSettings()
    sessions: Sessions = Sessions()
    context: Context = Context()
    profiles: Mapping[str, Context] = MappingProxyType({})
    experiment: Experiment = Experiment()
    models: tuple[ModelEntry, ...] = ()
    summarizer: Summarizer = Summarizer()
    recovery: Recovery = Recovery()
    memory: Memory = Memory()
    retrieval: Retrieval = Retrieval()
    commands: Commands = Commands()
    store: StoreSettings = StoreSettings()
    data_dir: Name = "./data"
    admin: Admin = Admin()
    log: Log = Log()


class Settings(Keys, frozen=True):
    """The settings in force, and what a reload reads again: the file and what the command line said."""

    origin: Path | None = None
    overrides: Mapping[str, object] = MappingProxyType({})
    explicit: Mapping[str, object] = MappingProxyType({})
    """The keys of `context` that were set anywhere: they stand under every preset, the others have that preset's default."""

    profile_keys: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    """The keys that each profile sets itself."""

    notes: tuple[str, ...] = ()
    """What has to be told of keys that have no counterpart here."""
    restores_as_set: bool = False
    """`sessions.restore_turns` was set anywhere: then it stands under every preset, too."""

    def __repr__(self) -> str:
        return f"Settings({as_tree(self)})"


def _masked_repr(section: msgspec.Struct) -> str:
    return f"{type(section).__name__}({', '.join(f'{name}={_masked(name, getattr(section, name))!r}' for name in section.__struct_fields__)})"


def _masked(name: str, value: object) -> object:
    if isinstance(value, str):
        return MASK if value and name in SECRETS else without_password(value)
    return value


def without_password(address: str) -> str:
    """An address as it may be shown: what stands before the host's @ is masked."""
    return re.sub(r"//[^/@]*@", f"//{MASK}@", address)


def as_tree(value: object, name: str = "") -> object:
    """A setting as dicts, lists and scalars; credentials, also those inside an address, are masked."""
    if isinstance(value, msgspec.Struct):
        keys = Keys.__struct_fields__ if isinstance(value, Settings) else value.__struct_fields__
        return {key: as_tree(getattr(value, key), key) for key in keys}
    if isinstance(value, Mapping):
        return {key: as_tree(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [as_tree(item) for item in value]
    return _masked(name, value)
