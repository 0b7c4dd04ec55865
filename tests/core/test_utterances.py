"""What one user message says of rules by itself."""

from __future__ import annotations

from ctxproxy.core.rules import Statement
from ctxproxy.core.topics import topic
from ctxproxy.core.utterances import claim, utterance
from tests.core.histories import FILLER


def test_a_message_without_remarks_is_not_parted_into_sentences() -> None:
    heard = utterance(f"{FILLER}. Never push to main. Answer in German from now on.")
    assert (heard.sentences, heard.little, heard.kept, heard.remarks) == ((), (), (), ())
    assert [(one.text, one.weight, one.says_change) for one in heard.claims] == [
        ("Never push to main.", 3.0, False),
        ("Answer in German from now on.", 3.0, True),
    ]


def test_remarks_are_found_at_their_places() -> None:
    heard = utterance("Never shout. Forget the rule about tabs. The budget is now 800. I ignore it. Remember this. This doesn't matter.")
    assert len(heard.sentences) == 6
    assert (heard.kept, heard.little) == ((4,), (5,))
    assert not heard.opens_with_little
    first, second = heard.remarks
    assert first.back is not None
    assert first.back.form == "off"
    assert (second.back, second.new_value) == (None, topic("The budget is now 800."))


def test_a_remark_is_no_rule_though_it_sounds_like_one() -> None:
    assert [one.text for one in utterance("请记住这一点。不要用红色。").claims] == ["不要用红色。"]
    assert utterance("Not important: never use tabs.").opens_with_little


def test_a_claim_knows_what_it_is_about() -> None:
    assert claim(Statement("Never push.", 3.0)) == ("Never push.", 3.0, topic("Never push."), False)


def test_of_a_text_as_long_as_a_book_the_beginning_and_the_end_are_read() -> None:
    book = "word word. " * 20_000
    heard = utterance(f"Never shout. {book}Never whisper. {book}Never mumble.")
    assert [one.text for one in heard.claims] == ["Never shout.", "Never mumble."]
