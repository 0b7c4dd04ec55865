"""A long text that was counted before is counted again by its lines, and gives the same."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from ctxproxy.tokenizers import known_lines
from ctxproxy.tokenizers.known_lines import KnownLines, lines_of
from ctxproxy.tokenizers.open import load_reference

ALPHABET = [
    *("a", "B", "é", "中", "1", "123", "/", "\\", ".", "...", "'s", "'", "\n", "\n\n", "\r\n", "\r", " ", "  ", "\t", "\u00a0", "\u3000"),
    *("\u2028", "\x0b", "\x1c", "\x85", "_", "-", "“", "😀", "\u0301", "\u200b", "\ufeff", "ſ", "\ud800"),
]


@dataclass
class Counter:
    """Counts characters, and remembers of which texts."""

    asked: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


def page(*numbers: int) -> str:
    return "".join(f"line {n} {'x' * 150}\n" for n in numbers)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("a\nb\n\nc", ["a\n", "b\n\n", "c"]),
        ("a\n b\n/c\n\u3000d\ne", ["a\n b\n/c\n\u3000d\n", "e"]),
        ("\nb\r\nc", ["\n", "b\r\n", "c"]),
    ],
)
def test_a_line_that_begins_with_a_blank_or_a_slash_stays_with_the_one_before(text: str, lines: list[str]) -> None:
    assert list(lines_of(text)) == lines


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_no_token_of_either_encoding_reaches_from_one_line_into_the_next(name: str) -> None:
    count, choose = load_reference(name).count, random.Random(1)
    for _ in range(4000):
        text = "".join(choose.choices(ALPHABET, k=choose.randint(1, 25)))
        assert count(text) == sum(map(count, lines_of(text))), repr(text)


def test_what_is_seen_the_third_time_is_not_counted_any_more() -> None:
    counter = Counter()
    known = KnownLines(counter)
    text, other = page(*range(20)), page(*range(15), *range(30, 35))
    assert known.count(text) == len(text)
    assert counter.asked == [text]
    assert known.count(other) == len(other)
    assert counter.asked[1:] == list(lines_of(other))
    counter.asked.clear()
    assert known.count(text) == len(text)
    assert counter.asked == [page(n) for n in range(15, 20)]  # seen once so far
    counter.asked.clear()
    assert known.count(text) == known.count(other) == len(text)
    assert counter.asked == []


@pytest.mark.parametrize(("first", "then"), [("if", "\u6669"), ("\u6669", "if"), ("else", "\u6c65\u6573")])
def test_texts_of_which_python_makes_the_same_hash_are_counted_each(first: str, then: str) -> None:
    assert hash(first) == hash(then)
    known = KnownLines(Counter())
    assert [known.count(text) for text in (first, then, first)] == [len(first), len(then), len(first)]


def test_a_short_text_is_counted_once() -> None:
    counter = Counter()
    known = KnownLines(counter)
    assert [known.count(text) for text in ("short\n" * 10, "other", "short\n" * 10)] == [60, 5, 60]
    assert counter.asked == ["short\n" * 10, "other"]


@pytest.mark.parametrize("text", ["x" * 5000, "a\nb" * 9000], ids=["one line", "lines without end"])
def test_what_is_counted_as_soon_as_looked_up_is_counted(text: str) -> None:
    counter = Counter()
    known = KnownLines(counter)
    assert [known.count(text) for _ in range(3)] == [len(text)] * 3
    assert counter.asked == [text] * 3


def test_what_was_not_seen_for_long_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_lines, "MOST_LINES", 30)
    counter = Counter()
    known = KnownLines(counter)
    for start in (0, 0, 100, 200, 300, 400):
        known.count(page(*range(start, start + 20)))
    counter.asked.clear()
    known.count(page(*range(20)))
    assert counter.asked == [page(*range(20))]
