"""Sharing a limited room: which of many pieces stay, and how large each may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

HEAD, TAIL = 0.35, 0.25
"""Shares of the room for the beginning and the end; the rest goes to pieces of note in between, then to more of the beginning."""
FAILURES_EN, FAILURES_ZH = ("error", "exception", "traceback", "fatal", "failed", "failure", "panic"), ("错误", "失败", "异常")
FAILURES = FAILURES_EN + FAILURES_ZH


def is_noteworthy(text: str) -> bool:
    """Whether a text tells of a failure: such lines and items are kept even from the middle."""
    lower = text.lower()
    return any(map(lower.__contains__, FAILURES_EN if lower.isascii() else FAILURES))


def level(sizes: Sequence[int], room: int) -> int:
    """The largest size at which all pieces, each cut to it, fit the room: small ones stay whole, large ones share alike."""
    left, count = max(room, 0), len(sizes)
    for n, size in enumerate(sorted(sizes)):
        share = left // (count - n)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def select(sizes: Sequence[int], noteworthy: Callable[[int], bool] | None, room: int, gap: int) -> list[int]:
    """The indexes of pieces to keep, in order: from the beginning, from the end, and those of note between them.

    `gap` is what a notice for left-out pieces costs; each kept piece in the middle makes one more.
    """
    room -= gap
    head = _walk(sizes, range(len(sizes)), int(room * HEAD))
    tail = _walk(sizes, range(len(sizes) - 1, head - 1, -1), int(room * TAIL))
    left = room - sum(sizes[:head]) - sum(sizes[len(sizes) - tail :])
    middle = []
    for at in filter(noteworthy, range(head, len(sizes) - tail)) if noteworthy else ():
        if sizes[at] + gap <= left:
            middle.append(at)
            left -= sizes[at] + gap
    more = _walk(sizes, range(head, middle[0] if middle else len(sizes) - tail), left)
    return [*range(head + more), *middle, *range(len(sizes) - tail, len(sizes))]


def _walk(sizes: Sequence[int], order: Sequence[int], room: int) -> int:
    """How many pieces, taken in this order, fit the room."""
    for taken, at in enumerate(order):
        room -= sizes[at]
        if room < 0:
            return taken
    return len(order)
