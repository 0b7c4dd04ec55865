"""Where connections come from: one pool for all hosts, without a limit of their number."""

from __future__ import annotations

import asyncio
import socket
from functools import lru_cache, partial
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

from ctxproxy.upstream.limits import Limits

KEEPALIVE_S = 60.0
PROBE_IDLE_S = 60
"""First TCP keep-alive probe: routers forget silent connections after about 350 s, a thinking model is silent for longer."""


class Connector(aiohttp.TCPConnector):
    """Connections that are kept or, with `keep` false, made for one call each; it tells which are new: aiohttp's tracing costs ten times as much."""

    def __init__(self, *, keep: bool) -> None:
        kept: dict[str, Any] = {"keepalive_timeout": KEEPALIVE_S} if keep else {"force_close": True}
        super().__init__(limit=0, limit_per_host=0, socket_factory=_socket, **kept)
        self._factory = cast("partial[ResponseHandler]", partial(_Connection, loop=asyncio.get_running_loop()))
        self._made: set[ResponseHandler] = set()
        self.limits = Limits()
        """Until when the answers of those who wait for one have to begin."""

    async def _create_connection(self, *values: Any, **named: Any) -> ResponseHandler:
        made = await super()._create_connection(*values, **named)
        self._made.add(made)
        return made

    def has_made(self, protocol: ResponseHandler | None) -> bool:
        """Whether this connection was made by the last call of `connect` that gave it; to be asked once after each."""
        if protocol not in self._made:
            return False
        self._made.remove(protocol)
        return True


class _Connection(ResponseHandler):
    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on reading; asked for with every piece of a body that is taken, and nearly never is there anything to go on with."""
        if self._reading_paused:
            super().resume_reading(resume_parser)


@lru_cache(maxsize=16)
def within(connect_s: float) -> aiohttp.ClientTimeout:
    """The time limit for a connection, as `connect` takes it."""
    return aiohttp.ClientTimeout(connect=connect_s)


def _socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_IDLE_S)
    return made
