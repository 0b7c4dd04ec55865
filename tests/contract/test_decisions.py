"""A decision as it is kept in one column: all comes back, in less than half the bytes of its tips."""

from __future__ import annotations

import msgspec
import pytest

from ctxproxy.core.messages import Tip
from ctxproxy.core.records import Checkpoint, FrozenEntry, LeftOut
from ctxproxy.store.decisions import TIP_CHARS, decided, decision_of

TIPS = tuple(f"{n:032x}" for n in range(300))


def checkpoint(*tips: Tip) -> Checkpoint:
    frame = FrozenEntry("", b'{"role":"user","content":"told"}', 9, "summarize", tips, "summary")
    original = FrozenEntry("ab" * 16, tokens=3)
    return Checkpoint("ef" * 16, "v", (frame, original), 1.0, "", (("summarize", 1),), (LeftOut(tips[:2], "drop_oldest", "over the budget"),))


@pytest.mark.parametrize(
    "tips",
    [(), TIPS, ("AB" * 16,), ("not in hexadecimal",), ("ab", "cd"), ("ab" * 16, "ab cd" + "0" * 27)],
    ids=["none", "many", "upper case", "no number", "too short", "with a blank"],
)
def test_a_decision_comes_back_as_it_was(tips: tuple[Tip, ...]) -> None:
    made = checkpoint(*tips)
    assert decided(decision_of(made)) == (made.entries, made.actions, made.left)


def test_a_tip_takes_half_of_its_characters() -> None:
    assert len(decision_of(checkpoint(*TIPS))) < len(decision_of(checkpoint())) + len(TIPS) * TIP_CHARS * 0.55


def test_a_decision_of_an_earlier_version_is_still_read() -> None:
    made = checkpoint(*TIPS)
    assert decided(msgspec.msgpack.encode([made.entries, made.actions])) == (made.entries, made.actions, ())
    assert decided(msgspec.msgpack.encode([made.entries, made.actions, made.left])) == (made.entries, made.actions, made.left)
