"""Whether an answer makes use of a text that its prompt had: it repeats an exact value, a wording, or what a short text says.

What the question says itself tells nothing: an answer that repeats it has not needed the text for that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ctxproxy.core.search_terms import MARK, query_terms, terms_of

TOKEN = re.compile(r"[^\W_\u3400-\u9fff]+|[\u3400-\u9fff]")
RUN = 6
"""So many words, or Chinese characters, in a row are a wording."""
NEW_IN_RUN = 2
"""Of these at least so many are not the question's."""
SHORT_TERMS = 6
"""A text of no more telling terms beyond the question's is used by an answer that has half of them."""
RARE = 3
"""What stands in more of the texts of a prompt is a turn of speech, or what the whole conversation is about."""
LEAST_DIGITS = 3
"""A number of fewer says little: 20 stands in many texts."""
TEXT_CHARS = 20_000
"""Of a longer text so much is looked at, half of it from each end."""


class Heard(NamedTuple):
    """What an answer says beyond what was asked."""

    terms: frozenset[str]
    asked: frozenset[str]
    runs: frozenset[tuple[str, ...]]


def heard(answer: str, asked: str) -> Heard:
    """An answer, read once for all the texts that it may quote."""
    answer, asked = _ends(answer), _ends(asked)
    known = frozenset(TOKEN.findall(asked.lower()))
    runs = frozenset(run for run in _runs(answer) if sum(token not in known for token in run) >= NEW_IN_RUN)
    return Heard(frozenset(terms_of(answer)), frozenset(terms_of(asked)), runs)


def telling(said: Heard, texts: Iterable[str]) -> Heard:
    """An answer without what stands in more than `RARE` of the texts: turns of speech that come again and again quote none of them."""
    terms: Counter[str] = Counter()
    runs: Counter[tuple[str, ...]] = Counter()
    for text in map(_ends, texts):
        terms.update(said.terms & terms_of(text).keys())
        runs.update(said.runs.intersection(_runs(text)))
    return said._replace(
        terms=said.terms - {term for term, times in terms.items() if times > RARE},
        runs=said.runs - {run for run, times in runs.items() if times > RARE},
    )


def quotes(said: Heard, text: str) -> bool:
    """Whether an answer makes use of a text."""
    text = _ends(text)
    new = [term for term in query_terms(text) if term not in said.asked]
    common = [term for term in new if term in said.terms]
    if not common:
        return False
    short = len(new) <= SHORT_TERMS and len(common) * 2 >= len(new)
    return short or any(map(_is_exact, common)) or any(run in said.runs for run in _runs(text))


def _is_exact(term: str) -> bool:
    return term.startswith(MARK) or sum(letter.isdigit() for letter in term) >= LEAST_DIGITS


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    tokens = TOKEN.findall(text.lower())
    return zip(*(tokens[at:] for at in range(RUN)), strict=False)


def _ends(text: str) -> str:
    return text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS // 2]}\n{text[-TEXT_CHARS // 2 :]}"
