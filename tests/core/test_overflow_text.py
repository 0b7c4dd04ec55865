"""Texts made comparable: escapes, echoes, figures, bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.overflow_text import MAX_TEXT_CHARS, marked, without_echoes


@pytest.mark.parametrize(
    ("text", "folded", "figures"),
    [
        ("Limit: 1,048,576 tokens", "limit: # tokens", (1_048_576,)),
        ("131.072 tokens", "# tokens", (131_072,)),
        ("12_288 > 4'096", "# > #", (12_288, 4_096)),
        ("200\u202f000 tokens", "# tokens", (200_000,)),
        ("is 131 072 tokens, got 1 140 000", "is # tokens, got #", (131_072, 1_140_000)),
        ("4096 128 items", "# # items", (4_096, 128)),
        ("`131072tokens` in **context**", "#tokens in context", (131_072,)),
        ("窗口为131072，需要140000个token", "窗口为#,需要#个token", (131_072, 140_000)),
        ("2025年11月30日", "2025年11月30日", ()),
        ('Traceback\\n File "/app/s.py", line 12, in handle\\n raise ValueError(m)', "traceback raise valueerror(m)", ()),
        ("188240 + 21333 &gt; 200000, it&#39;s &quot;a&quot;", "# + # > #, it's a", (188_240, 21_333, 200_000)),
        ("at 10.0.0.1:8080 -> 400: a => b", "at 10.0.0.1:# #: a b", (8_080, 400)),
        ("of 12288.0.", "of #.", (12_288,)),
        ("９０００ tokens，８１９２ maximum", "# tokens,# maximum", (9_000, 8_192)),
        ("9000/8192", "#/#", (9_000, 8_192)),
        ("at 2024/05/06 on 10.0.0.1:8000", "at 2024/05/06 on 10.0.0.1:#", (8_000,)),
        ("gpt-4-32k and claude-sonnet-4-20250514 and glm-5.2", "gpt-4-32k and claude-sonnet-4-20250514 and glm-5.2", ()),
        ("id 021788000000000000000000000000000000000000000000", "id 021788000000000000000000000000000000000000000000", ()),
        ("n 99999999999999", "n 99999999999999", ()),
        ("got -5", "got -5", ()),
        ("see https://x.example/max/4096/tokens now", "see now", ()),
        ("#5 `max_tokens` 'x' \"y\" model's", "# max_tokens x y model's", (5,)),
        ('a\\n b\\\\\\"c\\\\\\" \\u4e0a\\u4e0b\\u6587', "a b c 上下文", ()),
        ("<h1>413</h1> Too  Large", "# too large", (413,)),
        ("messages.0.content", "messages_0_content", ()),
    ],
)
def test_a_text_is_folded_and_its_figures_are_marked(text: str, folded: str, figures: tuple[int, ...]) -> None:
    said = marked(text)
    assert (said.text, said.figures) == (folded, figures)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('bad value "one two three four" here', "bad value   here"),
        ("bad value 'one two three four' here", "bad value   here"),
        ("bad value 「one two three four」 here", "bad value   here"),
        ("'max_tokens' is wrong", " max_tokens  is wrong"),
        ('message: "one two three four"', "message:  one two three four "),
        ("'message': 'the model's one two'", " message :  the model's one two "),
        ('an "open quote goes on', 'an "open quote goes on'),
        ("the users' input is 'a b c d'", "the users' input is  "),
        ("nothing quoted", "nothing quoted"),
    ],
)
def test_quoted_stretches_go_unless_an_error_speaks_in_them(text: str, kept: str) -> None:
    assert without_echoes(text) == kept


def test_of_a_long_text_head_and_end_are_read() -> None:
    said = marked("head 1 " + "x " * 50_000 + " end 2")
    assert said.figures == (1, 2)
    assert len(said.text) <= MAX_TEXT_CHARS + 1


@given(st.text(max_size=300))
def test_every_mark_has_its_figure(text: str) -> None:
    said = marked(text)
    assert len(said.figures) == len(said.marks) == said.text.count("#")
    assert all(said.text[place] == "#" and said.figure_at(place) == figure for place, figure in zip(said.marks, said.figures, strict=True))


@given(st.text(alphabet="'\"“”「」 ab\\{}", max_size=200))
def test_taking_echoes_out_never_adds_words(text: str) -> None:
    assert set(without_echoes(text)) <= set(text) | {" "}
