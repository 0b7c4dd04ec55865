"""What is read out of a message's text, worked out once and remembered as long as there is room: a prompt's old part is read again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ctxproxy.core.messages import Message

T = TypeVar("T")


class Reading(NamedTuple):
    """What is read out of messages: its name, and how many times a message's bytes it takes in memory, about."""

    name: str
    factor: float


class Memo(Protocol):
    """Gives what was made of messages before, and makes what is missing; what is made depends on nothing but the two."""

    def __call__(self, reading: Reading, messages: Sequence[Message], make: Callable[[Message], T]) -> Sequence[T]: ...


def no_memo(reading: Reading, messages: Sequence[Message], make: Callable[[Message], T]) -> Sequence[T]:
    """Remembers nothing."""
    return [make(message) for message in messages]


def text_key(text: str) -> int:
    """A number for a text by which it is known again: its hash and length in one, 64 bits, another one in another process.

    The hash alone does not do: CPython makes it of the bytes in memory, so `"if"` and `"晩"` have the same; the length tells them apart.
    """
    return hash(text) ^ len(text)
