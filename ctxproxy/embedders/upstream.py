"""Vectors from `/v1/embeddings` of the upstream that a request goes to, with the request's own credential. Neither is kept here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from ctxproxy.core import jsontext
from ctxproxy.core.codings import decode_body
from ctxproxy.core.urls import join_url
from ctxproxy.embedders.table import Table, packed
from ctxproxy.errors import CtxproxyError, EmbedderUnavailable
from ctxproxy.ports import Call, Response, Upstream
from ctxproxy.ports.embedding import Access, VectorTable

ANSWER_BYTES = 16_777_216
"""64 texts of 3,072 numbers take a third of it."""


class _Item(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Item]


class UpstreamEmbedder:
    """Asks a model of the upstream: `ports.embedding.Embedder`."""

    needs_access = True

    def __init__(self, upstream: Callable[[str], Upstream], model: str) -> None:
        self.name = f"upstream:{model}"
        self._upstream = upstream
        self._model = model

    async def embed(self, texts: Sequence[str], access: Access | None, within_s: float) -> list[bytes]:
        if access is None:
            raise EmbedderUnavailable("no request has shown yet where to ask and with which credential")
        try:
            async with asyncio.timeout(within_s):
                body = await self._asked(texts, access, within_s)
                return await asyncio.to_thread(_vectors, body, len(texts))
        except TimeoutError:
            raise EmbedderUnavailable(f"the upstream gave no vectors within {within_s:g} s") from None
        except EmbedderUnavailable:
            raise
        except CtxproxyError as error:
            raise EmbedderUnavailable(f"the upstream gave no vectors: {error.code}") from error

    def table(self) -> VectorTable:
        return Table()

    async def _asked(self, texts: Sequence[str], access: Access, within_s: float) -> bytes:
        headers = [*access.credentials, ("Content-Type", "application/json"), ("Accept", "application/json"), ("Accept-Encoding", "identity")]
        body = jsontext.encode({"model": self._model, "input": list(texts), "encoding_format": "float"})
        call = Call("POST", join_url(access.base_url, "/v1/embeddings"), headers, body, within_s, within_s)
        response = await self._upstream(access.base_url).send(call)
        try:
            if response.status != 200:
                raise EmbedderUnavailable(f"the upstream answered {response.status} to a call for vectors")
            return await _read(response)
        finally:
            await response.close()


async def _read(response: Response) -> bytes:
    gathered = bytearray()
    async for chunk in response.chunks():
        gathered += chunk
        if len(gathered) > ANSWER_BYTES:
            raise EmbedderUnavailable("the upstream's answer to a call for vectors does not end")
    coding = ", ".join(value for name, value in response.headers if name.lower() == "content-encoding")
    return decode_body(bytes(gathered), coding, ANSWER_BYTES)


def _vectors(body: bytes, count: int) -> list[bytes]:
    """A vector for each text; all of one length."""
    try:
        items = sorted(msgspec.json.decode(body, type=_Answer).data, key=lambda item: item.index)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise EmbedderUnavailable("the upstream's answer to a call for vectors is none") from None
    if [item.index for item in items] != list(range(count)) or len({len(item.embedding) for item in items}) != 1:
        raise EmbedderUnavailable("the upstream's answer to a call for vectors has not one for each text")
    return packed([item.embedding for item in items])
