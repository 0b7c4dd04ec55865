"""Sends calls over HTTP/1.1 with aiohttp, adding nothing to them and taking nothing from the answers.

Knows nothing of chat completions; what the library raises is turned into our errors in `faults`.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping

from yarl import URL

from ctxproxy.ports import Call
from ctxproxy.upstream.answer import HttpResponse
from ctxproxy.upstream.connector import Connector
from ctxproxy.upstream.faults import before_the_head
from ctxproxy.upstream.sending import FAILURES, Route, Sending, Stale, route_to

MOST_ROUTES = 256
"""URLs of which is remembered how they are called: few of them make nearly all calls."""


class HttpUpstream:
    """An upstream over HTTP: one pool of kept connections for all hosts, no limit of their number.

    Sends through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name, as curl does, but never to a loopback address through one;
    `proxies` (`{"https": "http://host:port", "no": "a.example"}`) replaces them. Reads no .netrc and keeps no cookies. Redirects are answers.
    """

    def __init__(self, *, connect_timeout_s: float = 10.0, proxies: Mapping[str, str] | None = None) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._proxies = dict(urllib.request.getproxies_environment() if proxies is None else proxies)
        self._routes: dict[str, Route] = {}
        self._kept: Connector | None = None
        self._fresh: Connector | None = None

    async def send(self, call: Call) -> HttpResponse:
        """The answer once its head is there. An error of the body's own iterator is raised as it is.

        A kept connection that turns out to be closed is replaced by a new one, once, if nothing of the body has been used up.
        """
        route = self._routes.get(call.url) or self._found(call)
        self._kept = self._kept or Connector(keep=True)
        try:
            return await Sending(call, route, self._kept).answer(self._connect_timeout_s)
        except Stale:
            self._fresh = self._fresh or Connector(keep=False)
            return await Sending(call, route, self._fresh).answer(self._connect_timeout_s)

    async def close(self) -> None:
        """Close every connection."""
        for connector in (self._kept, self._fresh):
            if connector is not None:
                connector.limits.close()
                await connector.close()

    def _found(self, call: Call) -> Route:
        try:
            route = route_to(call.url, self._proxies)
        except FAILURES as error:
            raise before_the_head(error, URL(), connect_s=self._connect_timeout_s, first_byte_s=call.first_byte_timeout_s) from error
        if len(self._routes) >= MOST_ROUTES:
            self._routes.clear()
        self._routes[call.url] = route
        return route
