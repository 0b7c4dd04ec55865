"""What is read out of a message's text, worked out once and remembered as long as there is room: a prompt's old part is read again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ctxproxy.core.messages import Message

T = TypeVar("T")


class Memo(Protocol):
    """Gives what was made of a message under this name before, else makes it; what is made depends on nothing but the two."""

    def __call__(self, name: str, message: Message, make: Callable[[], T]) -> T: ...


def no_memo(name: str, message: Message, make: Callable[[], T]) -> T:
    """Remembers nothing."""
    return make()
