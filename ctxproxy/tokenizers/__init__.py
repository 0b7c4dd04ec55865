"""Tokenizers: exact counts for OpenAI's two encodings, from data of our own; never a network, never a cache directory."""

from __future__ import annotations

from ctxproxy.tokenizers.bpe import BytePairTokenizer, LargerOf
from ctxproxy.tokenizers.open import encoding_for, library, open_tokenizer, tokenizer_for

__all__ = ["BytePairTokenizer", "LargerOf", "encoding_for", "library", "open_tokenizer", "tokenizer_for"]
