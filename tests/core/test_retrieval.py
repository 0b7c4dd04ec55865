"""Which pieces of what a prompt holds no more the newest request gets back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core.frames import TITLES as FRAME_TITLES
from ctxproxy.core.fusion import Nearness
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.recalled import Passage
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retrieval import (
    BESIDE,
    EARLIER_WEIGHT,
    ELSEWHERE_MOST,
    EXACT_WEIGHT,
    LEAST_MATCH,
    LITTLE_TOKENS,
    MOST_TERMS,
    NAMED_MOST,
    QUERY_CHARS,
    Bounds,
    Elsewhere,
    Query,
    choose,
    elsewhere,
    fill,
    gone,
    is_long_remark,
    merged,
    query_of,
    sense_of,
    with_what_was_before,
)
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.situation import Situation
from ctxproxy.core.text_index import Place, Posting, Postings, TextIndex, scores
from ctxproxy.core.validity import violations
from tests.core.chains import Chain, Step, leadings, pinned_histories
from tests.core.histories import FILLER, assistant, call, count, result, user
from tests.core.recalling import BOUNDS, DROPPING, ask, long_ago, postings, recalling

LIMIT = 400
LOCKER = "The locker at the gym opens with 7731."
WORDS = ["".join(letters) + "zo" for letters in product("bdfgkm", repeat=3)]
SISTER = "My sister Petra paints old houses in Oslo."


def found(s: Situation, bounds: Bounds = BOUNDS) -> list[Passage]:
    """What a request gets back, before it is put in."""
    query = query_of(s.reconciled.history)
    return choose(s, plan(s).transcript, query, postings(s, list(query.terms)), bounds)


def texts(history: Sequence[Message], bounds: Bounds = BOUNDS, limit: int = LIMIT, policy: Policy = DROPPING) -> list[str]:
    return [passage.text for passage in found(Chain(policy, late=99).situation(history, limit), bounds)]


# ---------------------------------------------------------------- what is looked for
def test_a_query_is_what_the_last_user_message_says() -> None:
    history = [user("Tell me of the weather in Lima tomorrow morning."), assistant("It rains."), user("Who painted the old houses in Oslo?")]
    assert query_of([*history, call("c"), result("c", "never looked for")]) == Query(dict.fromkeys(["paint", "old", "hous", "oslo"], 1.0), asks=True)


def test_without_a_user_message_nothing_is_looked_for() -> None:
    assert query_of([assistant("Hello there.")]) == Query({}, asks=False)
    assert query_of([]) == Query({}, asks=False)


@pytest.mark.parametrize("text", ["Thanks!", "ok", "好的", "谢谢。"])
def test_small_talk_asks_for_nothing(text: str) -> None:
    assert query_of([user("Which locker number opens the gym?"), assistant("7731."), user(text)]) == Query({}, asks=False)


def test_a_remark_about_something_else_gets_nothing_for_one_word_in_common() -> None:
    history = long_ago("The gym by the lake closes at nine.", question="Zebras graze near volcanic gym slopes during autumn monsoons.")
    assert texts(history) == []


def test_an_exact_value_weighs_more_than_a_word() -> None:
    terms = query_of([user("Where is ticket ORD-48213 now?")]).terms
    assert (terms["=ord-48213"], terms["ticket"]) == (EXACT_WEIGHT, 1.0)


def test_a_short_follow_up_is_widened_by_the_turn_before() -> None:
    before = user("Who painted the houses in Oslo?")
    terms = query_of([before, assistant("Petra."), user("And the houses in Bergen?")]).terms
    assert terms == {"paint": EARLIER_WEIGHT, "oslo": EARLIER_WEIGHT, "hous": 1.0, "bergen": 1.0}
    own = query_of([before, assistant("Petra."), user("Which locker number opens the gym?")]).terms
    assert "oslo" not in own, "a longer one says itself what it is about"
    assert query_of([user("Bergen?")]).terms == {"bergen": 1.0}


def test_of_a_text_with_many_words_that_asks_the_last_and_exact_values_are_looked_for() -> None:
    words = WORDS[: 2 * MOST_TERMS]
    questions = [f"What of {' '.join(words[at : at + 10])}?" for at in range(0, len(words), 10)]
    asked = query_of([user("What is src/app.py? " + " ".join(questions))])
    assert [term for term in asked.terms if term in words] == words[-MOST_TERMS + 1 :], "an exact value comes last of all"
    assert "=src/app.py" in asked.terms
    assert not is_long_remark(asked)


@pytest.mark.parametrize(("words", "is_long"), [(MOST_TERMS, False), (MOST_TERMS + 1, True)])
def test_a_remark_of_too_many_words_is_known(words: int, *, is_long: bool) -> None:
    said = query_of([user(" ".join(WORDS[:words]) + ".")])
    assert (len(said.terms), is_long_remark(said)) == (words, is_long)


def test_of_a_long_request_its_end_is_looked_for() -> None:
    terms = query_of([user("beginning " + "door " * (QUERY_CHARS // 5) + "locker")]).terms
    assert "beginn" not in terms
    assert {"door", "locker"} <= terms.keys()


ASKING = [
    ("Which number opens the locker?", True, "a question"),
    ("门是什么颜色？", True, "a Chinese one"),
    ("I went to the gym and to the lake, and it was a fine day. And you?", False, "a remark with a question at its end"),
    ("Thanks, that was it.", False, "a remark"),
    ("Remind me of what I said about Petra.", True, "a reminder asked for"),
    ("Do it as we discussed.", True, "what was before"),
    ("继续上次的话题。", True, "what was before, in Chinese"),
    ("", True, "nothing at all"),
]


@pytest.mark.parametrize(("text", "is_question", "why"), ASKING, ids=[row[-1] for row in ASKING])
def test_whether_a_text_asks(text: str, is_question: bool, why: str) -> None:
    assert query_of([user(text)]).asks is is_question, why


# ---------------------------------------------------------------- what fits
FITTING = [
    (LOCKER, "Which number opens the locker at the gym?", "words"),
    (SISTER, "Whose houses did Petra paint?", "words in another form"),
    ("钥匙放在大门旁边的红色盒子里。", "大门的钥匙在哪里？", "Chinese pairs"),
    ("The report lies in src/lake/report.md as ever.", "What of src/lake/report.md?", "a path"),
]


@pytest.mark.parametrize(("said", "question", "why"), FITTING, ids=[row[-1] for row in FITTING])
def test_what_was_said_long_ago_comes_back_for_a_question_about_it(said: str, question: str, why: str) -> None:
    assert said in texts(long_ago(said, "Bread is at home.", question=question)), why


def test_an_exact_value_beats_words() -> None:
    named, worded = "Parcel ORD-48213 came.", "The parcel that came was the parcel of the neighbour."
    history = long_ago(worded, *(f"Number {n} is a good one." for n in range(4)), named, question="Has parcel ORD-48213 come?")
    assert texts(history, Bounds(1, 1500, 0.0)) == [named]


def test_the_answer_is_found_by_the_question_before_it() -> None:
    told = [user("What is the number of the locker at the gym?"), assistant("It is 7731."), user("Fine, thanks a lot.")]
    history = [*long_ago(question="")[:2], *told, *long_ago(question="The number of the locker at the gym?")[1:]]
    assert texts(history)[:2] == [text_of(told[0]), text_of(told[1])]


def test_passages_come_back_oldest_first_with_their_places_and_roles() -> None:
    s = Chain(DROPPING).situation(long_ago(LOCKER, SISTER, question="What of the locker at the gym, and of the houses in Oslo?"), LIMIT)
    got, tips = found(s), s.reconciled.tips
    assert got[0] == Passage((tips[2], 0), "user", LOCKER)
    assert Passage((tips[4], 0), "user", SISTER) in got
    assert got[1] == Passage((tips[3], 0), "assistant", "All right.")
    places = [tips.index(passage.place[0]) for passage in got]
    assert places == sorted(places)


def test_what_the_prompt_holds_still_does_not_come_back() -> None:
    s = Chain(DROPPING).situation(long_ago(LOCKER, question="Which number opens the locker at the gym?"), 10_000)
    assert found(s) == []
    assert gone(plan(s).transcript, s.reconciled.tips, frozenset()) == frozenset()


def test_what_stands_in_a_frame_already_does_not_come_back() -> None:
    history = long_ago(LOCKER, question="Which number opens the locker at the gym?")
    s = Chain(Policy(), late=99).situation(history, LIMIT)
    frame = text_of(plan(s).messages[0])
    assert frame.startswith(FRAME_TITLES)
    assert LOCKER in frame
    assert LOCKER not in texts(history, policy=Policy())


def test_forgotten_messages_never_come_back() -> None:
    history = long_ago(LOCKER, question="Which number opens the locker at the gym?")
    chain = Chain(DROPPING)
    s = chain.situation(history, LIMIT)
    assert LOCKER in [passage.text for passage in found(s)]
    chain.forget(s.reconciled.tips[2])
    assert LOCKER not in [passage.text for passage in found(chain.situation(history, LIMIT))]


def test_what_a_client_let_expire_does_not_come_back() -> None:
    history = long_ago(LOCKER, question="Which number opens the locker at the gym?")
    history[2] = history[2].with_directives(Directives(expire_after_turns=2))
    assert LOCKER not in texts(history)


def test_what_a_conversation_was_cleared_of_is_found_by_a_message_that_looks_back() -> None:
    for question, comes_back in (
        ("Remind me: which number opens the locker at the gym?", True),
        ("Which number opens the locker at the gym?", False),
    ):
        s = Chain(DROPPING).situation(long_ago(LOCKER, question=question, turns=1), 10_000)
        assert (LOCKER in [passage.text for passage in found(replace(s, cleared=frozenset(s.reconciled.tips[:4])))]) is comes_back


def test_a_piece_of_another_branch_or_of_an_older_cut_is_passed_over() -> None:
    s = Chain(DROPPING).situation(long_ago(LOCKER, question="Which number opens the locker at the gym?"), LIMIT)
    query, transcript = query_of(s.reconciled.history), plan(s).transcript
    strange: list[Place] = [("ff" * 16, 0), (s.reconciled.tips[2], -1)]
    assert choose(s, transcript, query, Postings({"locker": [Posting(place, 3, 3) for place in strange]}, 50, 5.0), BOUNDS) == []
    cut: Place = (s.reconciled.tips[2], 7)
    got = choose(s, transcript, query, Postings({"locker": [Posting(cut, 3, 3)]}, 50, 5.0), BOUNDS)
    assert cut not in [passage.place for passage in got]


# ---------------------------------------------------------------- meaning
def by_meaning(history: Sequence[Message], cosines: dict[str, float], *, alone: bool = False, bounds: Bounds = BOUNDS) -> list[str]:
    """What comes back where these texts are so near to what is asked for."""
    s = Chain(DROPPING).situation(history, LIMIT)
    tips = {text_of(message): tip for message, tip in zip(s.reconciled.history, s.reconciled.tips, strict=True)}
    near = Nearness({(tips.get(text, "ff" * 16), 0): cosine for text, cosine in cosines.items()}, alone)
    query = query_of(s.reconciled.history)
    return [passage.text for passage in choose(s, plan(s).transcript, query, postings(s, list(query.terms)), bounds, near)]


WHICH_NUMBER = "Which number opens the locker at the gym?"
TWO = Bounds(2, 1500, 0.0)


def test_what_is_near_in_meaning_comes_back_beside_what_words_find() -> None:
    history = long_ago(LOCKER, SISTER, question=WHICH_NUMBER)
    assert SISTER not in texts(history, TWO)
    assert by_meaning(history, {SISTER: 0.8, "nowhere": 0.9}, bounds=TWO) == [LOCKER, SISTER]


def test_meaning_alone_needs_no_word_in_common() -> None:
    history = long_ago(LOCKER, SISTER, question="Which relative daubs ancient dwellings beside northern fjords?")
    assert texts(history) == []
    assert by_meaning(history, {SISTER: 0.6}, alone=True, bounds=Bounds(1, 1500, 0.0)) == [SISTER]
    for alone in (True, False):
        assert by_meaning(history, {SISTER: 0.6}, alone=alone, bounds=Bounds(8, 1500, 0.7)) == [], "min_score"
    assert SISTER in by_meaning(history, {SISTER: 0.6}), "words find nothing"


def test_where_nothing_can_be_compared_words_have_to_do() -> None:
    history = long_ago(LOCKER, SISTER, question=WHICH_NUMBER)
    assert by_meaning(history, {}, alone=True) == texts(history) == by_meaning(history, {})


def test_a_remark_gets_what_its_words_find_and_meaning_alone_only_what_is_very_near() -> None:
    history = long_ago(LOCKER, SISTER, question="The locker at the gym opens with a number, I like that.")
    assert by_meaning(history, {SISTER: 0.9}) == texts(history)
    assert by_meaning(history, {SISTER: LEAST_MATCH - 0.01}, alone=True) == []
    assert by_meaning(history, {SISTER: 0.9, "All right.": 0.1}, alone=True) == [SISTER]


def test_what_the_prompt_holds_is_not_compared() -> None:
    history = long_ago(LOCKER, question=WHICH_NUMBER)
    last_answer = text_of(history[-2])
    assert last_answer not in by_meaning(history, {last_answer: 0.9}, alone=True)


def test_an_exact_value_that_few_pieces_hold_comes_before_words_and_meaning() -> None:
    parcel, others = "Parcel ORD-48213 came.", [f"The parcel number {n} of the neighbour came." for n in range(12)]
    history = long_ago(*others, parcel, question="Has the parcel ORD-48213 of the neighbour come?")
    for alone in (True, False):
        assert by_meaning(history, {others[0]: 0.9, parcel: 0.3}, alone=alone, bounds=Bounds(1, 1500, 0.0)) == [parcel]


def test_a_value_that_many_pieces_hold_tells_none_of_them_from_the_others() -> None:
    told = [f"Parcel ORD-48213 was seen in harbour {n}." for n in range(NAMED_MOST + 1)]
    history = long_ago(*told, SISTER, question="Where was parcel ORD-48213 seen?")
    assert by_meaning(history, {SISTER: 0.9}, alone=True, bounds=Bounds(1, 1500, 0.0)) == [SISTER]


def test_the_sense_of_a_request_is_the_end_of_its_own_text() -> None:
    assert sense_of([user("Who painted the houses in Oslo?"), assistant("Petra."), user(" And in Bergen? "), call("c")]) == "And in Bergen?"
    assert sense_of([user("x" * QUERY_CHARS + "end")]) == "x" * (QUERY_CHARS - 3) + "end"
    assert sense_of([assistant("Hello.")]) == ""


# ---------------------------------------------------------------- how much comes back
def test_a_question_gets_more_than_a_remark() -> None:
    facts = [f"Locker {n} at the gym opens with the number 77{n}1." for n in range(10, 40)]
    asked = texts(long_ago(*facts, question="Which number opens the locker at the gym?"), Bounds(99, 5000, 0.0), 700)
    remarked = texts(long_ago(*facts, question="The locker at the gym opens with a number, I like that."), Bounds(99, 5000, 0.0), 700)
    assert len(asked) > 1.5 * len(remarked) > 0


def test_a_remark_gets_nothing_that_fits_a_little_only() -> None:
    said = [
        "The gym by the lake closes at nine.",
        "Bread is at home.",
        "My sister ate here.",
        "Noon is early.",
        "It is a fresh day.",
        "Cheese is old.",
    ]
    assert texts(long_ago(*said, question="So I swam in the lake and ate fresh bread with cheese at noon.")) == []
    assert said[0] in texts(long_ago(*said, question="When does the gym by the lake close?"))


def test_a_question_that_nothing_fits_gets_nothing() -> None:
    assert texts(long_ago(LOCKER, question="Which quasar emits neutrinos towards distant telescopes?")) == []


@pytest.mark.parametrize(
    ("bounds", "most"),
    [(Bounds(2, 1500, 0.0), 2), (Bounds(8, 0, 0.0), 0), (Bounds(8, 1500, 9.0), 0), (Bounds(8, 20, 0.0), 1)],
    ids=["top_k", "no tokens", "min_score", "few tokens"],
)
def test_no_more_comes_back_than_is_allowed(bounds: Bounds, most: int) -> None:
    facts = [f"Locker {n} at the gym opens with the number 77{n}1." for n in range(10, 16)]
    assert len(texts(long_ago(*facts, question="Which number opens the locker at the gym?"), bounds)) == most


def test_no_more_comes_back_than_fits_under_the_limit() -> None:
    facts = [f"Locker {n} at the gym opens with the number 77{n}1." for n in range(10, 40)]
    history = long_ago(*facts, question="Which number opens the locker at the gym?")
    for limit in (330, 360, 400, 500):
        step = Chain(DROPPING).ask(history, limit, decide=recalling)
        assert step.plan.recalled is not None
        assert step.plan.fits


def test_a_remark_leaves_the_prompt_below_the_trigger() -> None:
    facts = [f"Locker {n} at the gym opens with the number 77{n}1." for n in range(10, 40)]
    remark = "The locker at the gym opens with a number, I like that."
    step = Chain(DROPPING).ask(long_ago(*facts, question=remark), LIMIT, decide=recalling)
    assert step.plan.recalled is not None
    assert step.plan.transcript.tokens <= step.plan.budget.trigger
    assert step.plan.transcript.tokens - step.plan.tokens_in <= LITTLE_TOKENS


# ---------------------------------------------------------------- scores
def test_a_piece_counts_with_the_two_before_it() -> None:
    near = with_what_was_before({(3, 0): 10.0, (3, 1): 4.0, (5, 0): 1.0})
    whole, before, second = BESIDE
    assert near == {
        (3, 0): whole * 10.0,
        (3, 1): whole * 4.0 + before * 10.0,
        (4, 0): before * 10.0,
        (5, 0): whole * 1.0 + second * 10.0,
        (6, 0): before * 1.0,
        (7, 0): second * 1.0,
    }


def test_a_part_of_a_message_counts_with_the_message_before() -> None:
    near = with_what_was_before({(0, 0): 10.0, (1, 2): 1.0})
    assert near[1, 2] == BESIDE[0] * 1.0 + BESIDE[2] * 10.0


def test_a_piece_that_means_something_else_takes_nothing_from_those_after_it() -> None:
    assert with_what_was_before({(0, 0): -0.5}) == {(0, 0): -0.5 * BESIDE[0], (1, 0): 0.0, (2, 0): 0.0}


FILLED = [
    ([3, 9, 4], 8, 9, [3, 4], "what is too long is passed over"),
    ([3, 4, 5], 99, 2, [3, 4], "at most so many"),
    ([3, 4], 7, 9, [3, 4], "all the room"),
    ([3], 2, 9, [], "no room"),
]


@pytest.mark.parametrize(("sizes", "room", "top_k", "chosen", "why"), FILLED, ids=[row[-1] for row in FILLED])
def test_the_first_that_fit_together_are_chosen(sizes: list[int], room: int, top_k: int, chosen: list[int], why: str) -> None:
    assert fill(sizes, lambda size: size, room, top_k) == chosen, why


def index(*said: str, tip: str = "aa") -> TextIndex:
    made = TextIndex()
    for n, text in enumerate(said):
        made.add((f"{tip}{n}", 0), terms_of(text))
    return made


def test_two_parts_of_a_session_weigh_as_one() -> None:
    one, other, both = index(LOCKER, SISTER), index("The red door.", tip="bb"), index(LOCKER, SISTER)
    both.add(("bb0", 0), terms_of("The red door."))
    terms = ["locker", "petra", "door", "the"]
    together = merged(one.postings(terms), other.postings(terms))
    weights = dict.fromkeys(terms, 1.0)
    assert scores(together, weights) == pytest.approx(scores(both.postings(terms), weights))
    assert together.pieces == 3
    assert merged(index().postings(terms), index().postings(terms)) == Postings({}, 0, 0.0)


# ---------------------------------------------------------------- other sessions
FIRST, SECOND = SessionKey("ab" * 16, "first"), SessionKey("ab" * 16, "second")
QUERY = Query({"locker": 1.0, "gym": 1.0}, asks=True)
BREAD = [f"Bread {n} is at home." for n in range(5)]


def other(key: SessionKey, *said: str) -> Elsewhere:
    return Elsewhere(key, index(*said, *BREAD).postings(list(QUERY.terms)))


def test_what_was_said_in_other_sessions_is_found_the_best_first() -> None:
    sessions = [other(FIRST, "The locker at the gym, by the way, is blue and large and old and mine."), other(SECOND, "The locker. The gym.")]
    assert elsewhere(sessions, QUERY, BOUNDS) == [(SECOND, [("aa0", 0)]), (FIRST, [("aa0", 0)])]


def test_places_of_one_session_come_together() -> None:
    sessions = [other(FIRST, "Locker of the gym.", "A locker at the gym!"), other(SECOND, "locker gym")]
    assert [(key, len(places)) for key, places in elsewhere(sessions, QUERY, BOUNDS)] == [(SECOND, 1), (FIRST, 2)]


UNFIT: list[tuple[list[Elsewhere], Bounds, str]] = [
    ([], BOUNDS, "there are none"),
    ([other(FIRST, "Nothing of the kind.")], BOUNDS, "nothing is found there"),
    ([other(FIRST, "locker gym")], Bounds(8, 1500, 9.0), "nothing fits well enough"),
    ([other(FIRST, "locker " + FILLER * 9, "gym " + FILLER * 9)], BOUNDS, "each fits a little only"),
    ([Elsewhere(FIRST, index("the locker").postings(["locker"]))], Bounds(0, 1500, 0.0), "none is wanted"),
]


@pytest.mark.parametrize(("sessions", "bounds", "why"), UNFIT, ids=[row[-1] for row in UNFIT])
def test_of_other_sessions_only_what_fits_clearly_is_found(sessions: list[Elsewhere], bounds: Bounds, why: str) -> None:
    assert elsewhere(sessions, QUERY, bounds) == [], why


def test_a_session_that_knows_few_of_the_terms_is_left_out() -> None:
    query = Query(dict.fromkeys(["locker", "gym", "number"], 1.0), asks=True)
    few, more = index("locker", *BREAD).postings(list(query.terms)), index("locker gym", *BREAD).postings(list(query.terms))
    assert [key for key, _ in elsewhere([Elsewhere(FIRST, few), Elsewhere(SECOND, more)], query, BOUNDS)] == [SECOND]


def test_of_other_sessions_a_few_pieces_come_at_most() -> None:
    said = [f"locker gym {n}" for n in range(20)]
    (place,) = elsewhere([other(FIRST, *said, *(f"Cheese {n}" for n in range(40)))], QUERY, Bounds(99, 1500, 0.0))
    assert len(place[1]) == ELSEWHERE_MOST
    (place,) = elsewhere([other(FIRST, *said, *(f"Cheese {n}" for n in range(40)))], QUERY, Bounds(3, 1500, 0.0))
    assert len(place[1]) == 3


# ---------------------------------------------------------------- through a conversation
def prompts(step: Step) -> str:
    return "\n".join(text_of(message) for message in step.plan.messages)


def test_what_came_back_stays_until_the_next_compaction_and_can_come_back_again() -> None:
    chain, question = Chain(DROPPING, late=99), "Which number opens the locker at the gym?"
    history = long_ago(LOCKER, question=question)
    first = ask(chain, history, LIMIT)
    history += [assistant("It is 7731."), user("Thanks.")]
    second = ask(chain, history, LIMIT)
    assert (LOCKER in prompts(first), second.sent[: len(first.sent)]) == (True, first.sent)
    history += [message for n in range(6) for message in (assistant(f"r{n} " + FILLER * 3), user(f"s{n} " + FILLER * 3))]
    assert LOCKER not in prompts(ask(chain, history, LIMIT))
    assert LOCKER in prompts(ask(chain, [*history, assistant("Yes."), user(question)], LIMIT))


def test_a_pending_result_gets_nothing() -> None:
    history = long_ago(LOCKER, question="Which number opens the locker at the gym?")
    step = ask(Chain(DROPPING), [*history, call("c"), result("c", "done")], LIMIT)
    assert step.plan.changed
    assert step.plan.recalled is None
    assert LOCKER not in prompts(step)


# ---------------------------------------------------------------- a law
@st.composite
def asked_again(draw: st.DrawFn) -> Situation:
    """A request whose prompt has less room than its history, and whose question speaks of something that was said."""
    history = [message for message in draw(pinned_histories()) if message.role != "system"]
    spoken = [line[:80] for message in history if message.role in ("user", "tool") for line in text_of(message).splitlines() if line.strip()]
    history += [assistant("Yes."), user(f"What of {draw(st.sampled_from(spoken or ['it']))}?")]
    policy = draw(st.sampled_from([DROPPING, Policy(keep_recent_turns=0), Policy(preset="layered"), Policy(preset="hybrid")]))
    limit = max(int(sum(map(count, history)) * draw(st.sampled_from([0.1, 0.3, 0.6, 0.9]))), 40)
    return Chain(policy, draw(leadings)).situation(history, limit)


@settings(max_examples=25)
@given(asked_again(), st.sampled_from([BOUNDS, Bounds(1, 60, 0.0), Bounds(50, 100_000, 0.0)]))
def test_whatever_comes_back_the_prompt_is_valid_fits_and_ends_as_it_was_asked(s: Situation, bounds: Bounds) -> None:
    before = plan(s)
    made, again = (recalling(s, bounds, lambda _: before) for _ in range(2))
    assert made == again, "deterministic"
    if made.recalled is None:
        assert made == before
        return
    assert violations(made.messages) == [] or violations(before.messages) != []
    assert made.messages[-1].raw == s.reconciled.history[-1].raw
    assert made.fits
    assert made.tokens_sent == made.budget.fixed + made.transcript.tokens
    assert alternates(made.messages) or not alternates(before.messages)
    next_time = plan(replace(s, checkpoints=[made.recalled]))
    assert [message.raw for message in next_time.messages] == [message.raw for message in made.messages], "replayed byte for byte"
