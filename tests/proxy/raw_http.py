"""HTTP by hand: requests and answers of which every byte is chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit


class RawAnswer(NamedTuple):
    """An answer as it stood on the wire, its head taken apart; `body` still has its transfer coding."""

    status_line: str
    headers: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


async def ask(url: str, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> RawAnswer:
    """Send one request with exactly these headers, besides Host, Content-Length and `Connection: close`; read until the end."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    lines = [f"{method} {target} HTTP/1.1", f"Host: {parts.netloc}", *(f"{k}: {v}" for k, v in headers)]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode() + body)
    raw = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, rest = raw.partition(b"\r\n\r\n")
    status_line, *fields = head.decode().split("\r\n")
    pairs = [tuple(field.split(": ", 1)) for field in fields]
    return RawAnswer(status_line, [(name, value) for name, value in pairs], rest)
