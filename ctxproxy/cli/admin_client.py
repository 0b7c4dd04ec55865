"""Calls the admin API of a running proxy; needs nothing but the standard library."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import IO
from urllib.parse import quote, urlencode, urlsplit

from ctxproxy.cli.settings import config_argument, path_of
from ctxproxy.config.load import load
from ctxproxy.config.schema import Listen
from ctxproxy.errors import CtxproxyError

TIMEOUT_S = 60.0
"""A plan of a very large request takes seconds; longer than this and something hangs."""


class CallFailed(CtxproxyError):
    """The proxy could not be asked, or said no."""


def connection_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what tells where the proxy is and what may be asked of it."""
    config_argument(parser)
    parser.add_argument("--url", metavar="URL", help="where the proxy listens (default: as the configuration says)")


def connect(arguments: argparse.Namespace) -> AdminClient:
    """A client for the proxy that the configuration describes; raises ConfigError."""
    settings = load(path_of(arguments), os.environ, {})
    return AdminClient(arguments.url or _address(settings.listen), settings.admin.token)


def _address(listen: Listen) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen.host, listen.host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{listen.port}" if ":" in host else f"http://{host}:{listen.port}"


def in_path(name: str) -> str:
    """A session's id as a segment of a path."""
    return quote(name, safe="")


class AdminClient:
    """The admin API at one address."""

    def __init__(self, url: str, token: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise CallFailed(f"--url: expected http://host:port, not {url!r}")
        self._url = url.rstrip("/")
        self._token = token
        # no proxy of the environment: what it would see is the whole conversation and the token
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, method: str, path: str, *, query: Mapping[str, str | int | None] | None = None, body: object = None) -> object:
        """The answer's JSON value, None if it has none; raises CallFailed with one clear sentence."""
        request = self._request(method, path, query or {})
        request.data = None if body is None else json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
        return _value(self._sent(request), request.full_url)

    def download(self, path: str, into: IO[bytes]) -> None:
        """Write an answer to a file as it comes; raises CallFailed, also where it breaks off."""
        with self._open(self._request("GET", path, {})) as response:
            try:
                shutil.copyfileobj(response, into)
                if getattr(response, "length", None):  # what is still to come
                    raise HTTPException("the connection was closed")
            except (OSError, HTTPException) as error:
                raise CallFailed(f"{self._url} broke off while it answered: {error}; what was written is not whole") from None

    def upload(self, path: str, content: IO[bytes], *, query: Mapping[str, str | int | None]) -> object:
        """The answer to a file that is sent as it is; raises CallFailed."""
        request = self._request("POST", path, query)
        request.data = content
        request.add_header("Content-Type", "application/x-ndjson")
        request.add_header("Transfer-Encoding", "chunked")
        return _value(self._sent(request), request.full_url)

    def pages(self, path: str, *, query: Mapping[str, str | int | None] | None = None) -> Iterator[Mapping[str, object]]:
        """The entries of a list, page after page."""
        cursor: str | None = None
        while True:
            page = self.call("GET", path, query={**(query or {}), "cursor": cursor})
            if not isinstance(page, dict) or not isinstance(page.get("data"), list):
                raise CallFailed(f"{self._url} answered {path} with something that is no list; is it ctxproxy?")
            yield from page["data"]
            following = page.get("next_cursor")
            if not following or following == cursor:
                return
            cursor = following

    def _request(self, method: str, path: str, query: Mapping[str, str | int | None]) -> urllib.request.Request:
        given = {key: value for key, value in query.items() if value is not None}
        url = f"{self._url}/ctxproxy/api/{path}" + (f"?{urlencode(given)}" if given else "")
        request = urllib.request.Request(url, method=method)  # noqa: S310 - scheme checked
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        return request

    def _sent(self, request: urllib.request.Request) -> bytes:
        with self._open(request) as response:
            try:
                content: bytes = response.read()
            except (OSError, HTTPException) as error:
                raise CallFailed(f"{self._url} cannot be reached: {error}") from None
            return content

    def _open(self, request: urllib.request.Request) -> IO[bytes]:
        try:
            opened: IO[bytes] = self._opener.open(request, timeout=TIMEOUT_S)
            return opened
        except urllib.error.HTTPError as error:
            with error:
                raise CallFailed(_refusal(error.code, error.read())) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ConnectionRefusedError):
                raise CallFailed(f"no proxy listens at {self._url}; start one with `ctxproxy serve`, or say where it is with --url") from None
            raise CallFailed(f"{self._url} cannot be reached: {reason}") from None


def _value(content: bytes, url: str) -> object:
    if not content:
        return None
    try:
        value: object = json.loads(content)
    except ValueError:
        raise CallFailed(f"{url} answered with something that is not JSON; is it ctxproxy?") from None
    return value


def _refusal(status: int, content: bytes) -> str:
    try:
        message = json.loads(content)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = "no reason was given"
    hint = "; set admin.token as the proxy has it" if status == 401 else ""
    return f"the proxy answered {status}: {message}{hint}"
