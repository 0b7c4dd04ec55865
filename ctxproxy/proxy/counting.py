"""What is worked out once per message and remembered by the digest of its bytes, whoever sends it: its identity and its tokens."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ctxproxy.core.images import Vision, vision_for
from ctxproxy.core.memo import Reading
from ctxproxy.core.messages import Message, digest, identity
from ctxproxy.core.pasts import Past, past_of
from ctxproxy.core.tokens import fixed_tokens, message_tokens
from ctxproxy.ports import Tokenizer

THREAD_ABOVE_BYTES = 32_768
"""Counting this much takes about 2 ms with tiktoken (17 MB/s); more than that goes to a thread."""
T = TypeVar("T")
MOST_KINDS = 1000
"""Models that are asked for; clients name them."""
ENTRY_BYTES = 250
"""What one remembered value takes in memory, about: key, value and their place in the map."""
READ_BYTES, READING_BYTES = 450, 250
"""What is around all that was read out of one message, by name, and around each reading, about."""
MISSING: Any = object()


class Identities:
    """Identities of messages, the last used ones remembered in at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._known: OrderedDict[bytes, bytes] = OrderedDict()
        self._most = max(max_bytes // ENTRY_BYTES, 1)

    def past(self, history: Sequence[Message]) -> Past:
        """What is known of a history."""
        return past_of(history, self._identified)

    def _identified(self, message: Message) -> bytes:
        key = message.digest
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        found = self._known[key] = identity(message)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return found


class Counts:
    """Token counts of messages by tokenizer and kind of model, the last used ones remembered in at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._most = max(max_bytes // ENTRY_BYTES, 1)
        self._known: OrderedDict[tuple[str, bytes], int] = OrderedDict()
        self._kinds: dict[tuple[str, str], tuple[str, Vision]] = {}

    def counter(self, tokenizer: Tokenizer, model: str, factor: float) -> Callable[[Message], int]:
        """A function message → tokens as the upstream counts them (`factor` from calibration)."""
        kind, vision = self._kind(tokenizer, model)

        def anew(message: Message) -> int:
            key = (kind, message.digest)
            known = self._known.get(key)
            return self._remember(key, message_tokens(message, tokenizer.count, vision)) if known is None else known

        def count(message: Message) -> int:
            return math.ceil(message.counted(kind, anew) * factor)

        def plain(message: Message) -> int:
            return message.counted(kind, anew)

        return plain if factor == 1 else count

    def of(self, past: Past, tokenizer: Tokenizer, model: str, factor: float) -> tuple[int, ...]:
        """The tokens of each message of a history as the upstream counts them."""
        return past.counts(self._kind(tokenizer, model)[0], self.counter(tokenizer, model, 1), factor)

    async def prime(self, past: Past, leading: Sequence[Message], tokenizer: Tokenizer, model: str) -> None:
        """Count what is not known yet of the leading messages and a history, in a thread if it is much, so that the loop is never held up."""
        kind, vision = self._kind(tokenizer, model)
        uncounted = (*leading, *past.uncounted(kind))
        if _size_of(uncounted) <= THREAD_ABOVE_BYTES:
            return

        def counted() -> list[tuple[Message, int]]:
            unknown = [m for m in uncounted if not m.is_counted(kind) and (kind, m.digest) not in self._known]
            return [(m, message_tokens(m, tokenizer.count, vision)) for m in unknown]

        for message, tokens in await asyncio.to_thread(counted):
            self._remember((kind, message.digest), tokens)

    def takes_long(self, past: Past, leading: Sequence[Message], tokenizer: Tokenizer, model: str) -> bool:
        """Whether counting the leading messages and a history is work for a thread."""
        return _size_of((*leading, *past.uncounted(self._kind(tokenizer, model)[0]))) > THREAD_ABOVE_BYTES

    async def fixed(self, tools: bytes | None, functions: bytes | None, response_format: bytes | None, tokenizer: Tokenizer) -> int:
        """The tokens of what a request carries beside its messages, not calibrated."""
        if not (tools or functions or response_format):
            return fixed_tokens(None, None, None, tokenizer.count)
        key = (f"{tokenizer.name} fixed", digest(repr((tools, functions, response_format)).encode()))
        known = self._known.get(key)
        if known is None:
            known = self._remember(key, await asyncio.to_thread(fixed_tokens, tools, functions, response_format, tokenizer.count))
        return known

    def _kind(self, tokenizer: Tokenizer, model: str) -> tuple[str, Vision]:
        """What a count depends on beside the message: the encoding, and how the model counts pictures."""
        known = self._kinds.get((tokenizer.name, model))
        if known is None:
            vision = vision_for(model)
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            self._kinds[tokenizer.name, model] = known = (f"{tokenizer.name} {vision}", vision)
        return known

    def _remember(self, key: tuple[str, bytes], tokens: int) -> int:
        self._known[key] = tokens
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return tokens


def _size_of(messages: Sequence[Message]) -> int:
    return sum([len(message.raw) for message in messages])


class Readings:
    """What was read out of messages, that of the last used ones remembered in at most about `max_bytes`; a `Memo`."""

    def __init__(self, max_bytes: int) -> None:
        self._known: OrderedDict[bytes, _Read] = OrderedDict()
        self._left = max_bytes
        self._lock = threading.Lock()
        """Long prompts are planned in threads."""

    def __call__(self, reading: Reading, messages: Sequence[Message], make: Callable[[Message], T]) -> list[T]:
        digests, name = [message.digest for message in messages], reading.name
        with self._lock:
            known, touch = self._known, self._known.move_to_end
            found = [read.made.get(name, MISSING) if (read := known.get(one)) else MISSING for one in digests]
            missing = [at for at, made in enumerate(found) if made is MISSING]
            for one in [one for one, made in zip(digests, found, strict=True) if made is not MISSING] if missing else digests:
                touch(one)
        for at in missing:
            found[at] = make(messages[at])
        if missing:
            self._remember(name, [(digests[at], found[at], READING_BYTES + int(reading.factor * len(messages[at].raw))) for at in missing])
        return found

    def _remember(self, name: str, made: Sequence[tuple[bytes, Any, int]]) -> None:
        with self._lock:
            for key, one, size in made:
                read = self._known.get(key)
                if read is None:
                    read = self._known[key] = _Read()
                    self._left -= read.size
                self._known.move_to_end(key)
                if name not in read.made:
                    read.made[name] = one
                    read.size += size
                    self._left -= size
                while self._left < 0:
                    self._left += self._known.popitem(last=False)[1].size


@dataclass(slots=True)
class _Read:
    """What was read out of one message, by name, and what that takes in bytes."""

    made: dict[str, Any] = field(default_factory=dict)
    size: int = READ_BYTES
