"""Full text by BM25."""

from __future__ import annotations

from math import log

import pytest

from ctxproxy.core.text_index import MOST_GAIN, NO_POSTINGS, Posting, TextIndex, inverted, most, rarity, scores, standing, turned_back

DOOR, LONG, OTHER = ("aa", 0), ("aa", 1), ("bb", 0)


def index() -> TextIndex:
    """Three pieces of 2, 6 and 4 terms: 4 on average."""
    made = TextIndex()
    made.add(DOOR, {"red": 1, "door": 1})
    made.add(LONG, {"red": 2, "roof": 4})
    made.add(OTHER, {"blue": 4})
    return made


def test_terms_stand_where_they_were_put() -> None:
    found = index().postings(["red", "blue", "green"])
    assert found.by_term == {"red": [Posting(DOOR, 2, 1), Posting(LONG, 6, 2)], "blue": [Posting(OTHER, 4, 4)]}
    assert (found.pieces, found.average_length) == (3, 4.0)


PARTS = {0: {"red": 1, "door": 1}, 1: {"red": 2, "roof": 4}}


def test_terms_stand_in_pieces_that_are_in_no_index_as_they_would_in_one() -> None:
    messages = [inverted("aa", PARTS.items()), inverted("bb", [(0, {"blue": 4})])]
    found = standing(iter(messages), ["red", "blue", "green"])
    assert found == index().postings(["red", "blue", "green"])
    assert list(found.by_term) == ["red", "blue"]
    assert standing(messages, ["red"], {DOOR}) == ({"red": [Posting(LONG, 6, 2)]}, 2, 5.0, {})
    assert standing([], ["red"]) == NO_POSTINGS


def test_the_pieces_of_a_message_are_given_back_as_they_came() -> None:
    more = {**PARTS, 2: {"red": 3}, 3: {"red": 1}}
    assert turned_back(inverted("aa", more.items())) == more
    assert turned_back(inverted("aa", [(-1, {}), (-2, {"red": 1})])) == {-1: {}, -2: {"red": 1}}


def test_a_piece_that_is_there_already_stays() -> None:
    made = index()
    made.add(DOOR, {"green": 9})
    assert DOOR in made
    assert made.postings(["green", "door"]) == index().postings(["door"])


def test_a_piece_that_is_removed_is_found_no_more_and_weighs_nothing() -> None:
    made = index()
    made.remove(LONG)
    made.remove(LONG)
    made.remove(("never put in", 0))
    assert LONG not in made
    found = made.postings(["red", "roof"])
    assert found.by_term == {"red": [Posting(DOOR, 2, 1)]}
    assert (found.pieces, found.average_length) == (2, 3.0)
    made.add(LONG, {"red": 2, "roof": 4})
    assert made.postings(["red", "roof"]) == index().postings(["red", "roof"]), "it can come again"


def test_an_empty_index_holds_nothing() -> None:
    assert TextIndex().postings(["red"]) == NO_POSTINGS
    assert scores(NO_POSTINGS, {"red": 1.0}) == {}
    assert most(NO_POSTINGS, {"red": 1.0}) == 0.0


def test_scores_are_those_of_bm25_worked_out_by_hand() -> None:
    red = log(1 + (3 - 2 + 0.5) / (2 + 0.5))  # 0.47
    door = log(1 + (3 - 1 + 0.5) / (1 + 0.5))  # 0.98
    short, long = 1.2 * (0.25 + 0.75 * 2 / 4), 1.2 * (0.25 + 0.75 * 6 / 4)  # 0.75, 1.65
    found = scores(index().postings(["red", "door"]), {"red": 1.0, "door": 1.0})
    assert found == pytest.approx({DOOR: red * 2.2 / (1 + short) + door * 2.2 / (1 + short), LONG: red * 2 * 2.2 / (2 + long)})
    assert [round(found[place], 2) for place in (DOOR, LONG)] == [1.82, 0.57]


@pytest.mark.parametrize(("times", "factor"), [(0, 1.0), (1, 1.1), (2, 1.15), (1000, 1 + MOST_GAIN)])
def test_003_50_what_was_quoted_weighs_more_and_never_more_than_a_fifth(times: int, factor: float) -> None:
    found = index().postings(["red", "door"])
    plain, after = (scores(postings, {"red": 1.0, "door": 1.0}) for postings in (found, found._replace(quoted={LONG: times})))
    assert after[LONG] == pytest.approx(plain[LONG] * factor)
    assert after[DOOR] == plain[DOOR]


def test_a_terms_weight_multiplies_its_share() -> None:
    found = index().postings(["red", "door"])
    plain, doubled = scores(found, {"red": 1.0}), scores(found, {"red": 2.0})
    assert plain[LONG] > 0.0
    assert doubled == pytest.approx({place: 2 * score for place, score in plain.items()})


def test_the_most_is_the_score_of_a_piece_of_average_length_with_each_term_once() -> None:
    made = index()
    made.add(("average", 0), {"red": 1, "door": 1, "and": 2})
    found, weights = made.postings(["red", "door", "nowhere"]), {"red": 1.0, "door": 0.5, "nowhere": 9.0}
    assert found.average_length == 4.0
    assert scores(found, weights)["average", 0] == pytest.approx(most(found, weights))


def test_a_term_that_all_pieces_hold_tells_next_to_nothing_and_never_less() -> None:
    weights = [rarity(holding, 10) for holding in range(1, 11)]
    assert weights == sorted(weights, reverse=True)
    assert 0.0 < weights[-1] < 0.05
