"""From a `base_url` to the upstream that serves it."""

from __future__ import annotations

from collections.abc import Callable

from ctxproxy.core.urls import DEMO_ORIGIN, check_base_url, join_url
from ctxproxy.ports import Upstream
from ctxproxy.upstream.client import HttpUpstream
from ctxproxy.upstream.demo import DemoUpstream

__all__ = ["join_url", "open_upstream"]


def open_upstream(base_url: str, *, count_tokens: Callable[[str], int], connect_timeout_s: float = 10.0) -> Upstream:
    """The built-in model for "demo" (it counts with `count_tokens`), else a pool of HTTP connections that serves any URL; raises ConfigError."""
    if check_base_url(base_url).startswith(DEMO_ORIGIN):
        return DemoUpstream(count_tokens=count_tokens)
    return HttpUpstream(connect_timeout_s=connect_timeout_s)
