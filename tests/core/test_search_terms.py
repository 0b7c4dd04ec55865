"""What a text is found by."""

from __future__ import annotations

import pytest

from ctxproxy.core.search_terms import LONGEST_WORD_CHARS, MARK, query_terms, terms_of

SAME = [
    ("paint", "painted"),
    ("paint", "Painting"),
    ("paint", "paints"),
    ("house", "houses"),
    ("box", "boxes"),
    ("party", "parties"),
    ("class", "classes"),
    ("issue", "issues"),
    ("store", "stored"),
    ("cat", "cats"),
    ("name", "names"),
    ("page", "pages"),
    ("case", "cases"),
]


@pytest.mark.parametrize(("plain", "other"), SAME, ids=[row[1] for row in SAME])
def test_a_word_is_found_in_another_form(plain: str, other: str) -> None:
    assert terms_of(plain) == terms_of(other)


AS_THEY_ARE = ["bus", "red", "glass", "sing", "über", "naïvely", "a1s2s"]


@pytest.mark.parametrize("word", AS_THEY_ARE)
def test_a_short_word_and_one_of_other_letters_stay_as_they_are(word: str) -> None:
    assert word in terms_of(word)


def test_terms_are_counted() -> None:
    assert terms_of("Red door, red roof: RED!") == {"red": 3, "door": 1, "roof": 1}
    assert terms_of(" ... \n") == {}


def test_encoded_data_is_no_word() -> None:
    longest = "x" * LONGEST_WORD_CHARS
    assert terms_of(f"{longest} {longest}x") == {longest: 1}


def test_chinese_is_found_by_pairs_of_neighbours_and_a_lone_character_by_itself() -> None:
    assert terms_of("红色大门") == {"红色": 1, "色大": 1, "大门": 1}
    assert terms_of("钥匙在Petra家") == {"钥匙": 1, "匙在": 1, "petra": 1, "家": 1}
    assert "大门" in query_terms("我们的大门是什么颜色？")


EXACT = [
    ("see src/app/main.py", "src/app/main.py"),
    ("order ORD-48213, please", "ord-48213"),
    ("on 2024-05-01", "2024-05-01"),
    ("release v1.2.3", "v1.2.3"),
    ("write to Petra@Example.org", "petra@example.org"),
    ("https://example.org/a/b", "https://example.org/a/b"),
    ("call parse_header", "parse_header"),
]


@pytest.mark.parametrize(("text", "value"), EXACT, ids=[row[1] for row in EXACT])
def test_an_exact_value_is_a_term_of_its_own_beside_its_words(text: str, value: str) -> None:
    terms = terms_of(text)
    assert [term for term in terms if term.startswith(MARK)] == [MARK + value]
    assert len(terms) > 1, "it is found by its parts too"
    assert MARK + value in query_terms(text)


def test_a_plain_number_or_an_amount_is_no_exact_value() -> None:
    assert not any(term.startswith(MARK) for term in terms_of("350 of them for $12.50"))


ASKED = [
    ("What is the color of the door?", ["color", "door"], "words that say nothing are left out"),
    ("Where does this door lead?", ["door", "lead"], "also those that would have a common form of their own"),
    ("door, Door and doors", ["door"], "each once"),
    ("What is it?", ["what", "is", "it"], "all of them where none says what it is about"),
    ("什么", ["什么"], "also in Chinese"),
    ("plan b or c", ["plan"], "a lone letter says nothing"),
    ("", [], "nothing"),
]


@pytest.mark.parametrize(("text", "terms", "why"), ASKED, ids=[row[-1] for row in ASKED])
def test_a_query_has_the_terms_that_say_what_it_is_about(text: str, terms: list[str], why: str) -> None:
    assert query_terms(text) == terms, why
