"""From the settings to the embedder, if there is one. What an embedder needs is imported here, and only when it is asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from ctxproxy.errors import ConfigError
from ctxproxy.ports import Upstream
from ctxproxy.ports.embedding import Embedder


def open_embedder(which: Literal["wordllama", "upstream"], model: str, upstream: Callable[[str], Upstream]) -> Embedder:
    """The embedder of this name; takes a second at the first time (call it in a thread). Raises ConfigError if it cannot be had."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        if which == "upstream":
            from ctxproxy.embedders.upstream import UpstreamEmbedder  # noqa: PLC0415 - needs the extra

            return UpstreamEmbedder(upstream, model)
        from ctxproxy.embedders.wordllama import WordLlama  # noqa: PLC0415 - likewise

        return WordLlama()
    except (ImportError, OSError, ValueError) as error:
        raise ConfigError(f"retrieval.embedder: {which} cannot be loaded: {type(error).__name__}: {error}", param="retrieval.embedder") from error
    finally:
        root.handlers[:], root.level = handlers, level  # wordllama sets up the log of the whole program when it is imported
