"""A sign: relation, subject before it, limit after it, in one sentence."""

from __future__ import annotations

import pytest

from ctxproxy.core.overflow_wording import MAX_RELATIONS, NAMES_WINDOW, Sign, first, words

SIGN = Sign("s", "overflow", words("exceeds"), before=words("prompt"), after=words("limit"), unless=words("image"), nowhere=words("quota"))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("the prompt exceeds the limit", True),
        ("it exceeds nothing; the prompt exceeds the limit", True),
        ("the prompt is fine. it exceeds the limit", False),
        ("the prompt exceeds all. a limit", False),
        ("the limit exceeds the prompt", False),
        ("the image prompt exceeds the limit", False),
        ("an image. the prompt exceeds the limit", True),
        ("the prompt exceeds the limit. see your quota", False),
        ("prompt " + "x" * 200 + " exceeds the limit", False),
        ("", False),
    ],
)
def test_subject_relation_and_limit_have_to_stand_in_one_sentence(text: str, holds: bool) -> None:
    assert SIGN.holds_in(text) is holds


def test_a_bounded_number_of_relations_is_looked_at() -> None:
    assert not SIGN.holds_in("exceeds. " * MAX_RELATIONS + "the prompt exceeds the limit")


def test_the_first_sign_of_a_table_is_taken() -> None:
    other = Sign("o", "other", words("prompt"))
    assert first((SIGN, other), "the prompt exceeds the limit") is SIGN
    assert first((SIGN, other), "the prompt") is other
    assert first((SIGN, other), "nothing") is None


@pytest.mark.parametrize("name", ["context length", "context_window", "max_model_len", "n_ctx", "maximum model length", "context size"])
def test_windows_have_many_names(name: str) -> None:
    assert NAMES_WINDOW.search(name)
