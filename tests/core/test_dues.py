"""What is still to be made of something that is stored."""

from __future__ import annotations

import pytest

from ctxproxy.core.dues import Due, DueKind, DueNote, DuePoints, kind_of
from ctxproxy.core.points import Point


@pytest.mark.parametrize(
    ("due", "kind"),
    [
        (DueNote(("aa", "bb"), "trimmed", "ann", 1.0), "note"),
        (DuePoints("bb", (Point("decision", "way", "by train", "bb", 1.0, 2.5, "summary"),)), "points"),
    ],
)
def test_a_due_is_known_by_its_kind_and_the_newest_message_that_it_is_of(due: Due, kind: DueKind) -> None:
    assert (kind_of(due), due.tip) == (kind, "bb")
