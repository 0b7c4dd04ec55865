"""Token counts of messages, remembered by the digest of their bytes: a message is counted once, whoever sends it."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence

from ctxproxy.core.images import Vision, vision_for
from ctxproxy.core.messages import Message, digest
from ctxproxy.core.tokens import message_tokens
from ctxproxy.ports import Tokenizer

THREAD_ABOVE_BYTES = 32_768
"""Counting this much takes about 2 ms with tiktoken (17 MB/s); more than that goes to a thread."""
ENTRY_BYTES = 200
"""What one remembered count takes in memory, about: key, number and their place in the map."""


class Counts:
    """Counts messages with one tokenizer; remembers at most `max_bytes` worth of counts."""

    def __init__(self, max_bytes: int) -> None:
        self._most = max(max_bytes // ENTRY_BYTES, 1)
        self._known: OrderedDict[tuple[str, Vision, bytes], int] = OrderedDict()

    def counter(self, tokenizer: Tokenizer, model: str, factor: float) -> Callable[[Message], int]:
        """A function message → tokens as the upstream counts them (`factor` from calibration)."""

        vision = vision_for(model)

        def count(message: Message) -> int:
            return math.ceil(self._raw(message, tokenizer, vision) * factor)

        return count

    def _raw(self, message: Message, tokenizer: Tokenizer, vision: Vision) -> int:
        key = (tokenizer.name, vision, digest(message.raw))
        known = self._known.get(key)
        if known is None:
            known = message_tokens(message, tokenizer.count, vision)
            self._known[key] = known
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known

    async def prime(self, messages: Sequence[Message], tokenizer: Tokenizer, model: str) -> None:
        """Count what is not known yet, in a thread if it is much, so that the loop is never held up."""
        vision = vision_for(model)
        unknown = [m for m in messages if (tokenizer.name, vision, digest(m.raw)) not in self._known]
        if sum(len(m.raw) for m in unknown) > THREAD_ABOVE_BYTES:
            fresh = await asyncio.to_thread(lambda: [message_tokens(m, tokenizer.count, vision) for m in unknown])
            for message, tokens in zip(unknown, fresh, strict=True):
                self._known[(tokenizer.name, vision, digest(message.raw))] = tokens
