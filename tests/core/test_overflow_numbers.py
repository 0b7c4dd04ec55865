"""Figures by their role in the sentence."""

from __future__ import annotations

import pytest

from ctxproxy.core.overflow_numbers import Figures, clamp_helps, completed, figures_of, is_window
from ctxproxy.core.overflow_text import marked


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("188240 + 21333 > 200000", Figures(200_000, 188_240, 21_333, 209_573)),
        ("prompt is too long: 209303 tokens > 200000 maximum", Figures(200_000, 209_303, None, 209_303)),
        ("must be <= 1512. Given: 603 `inputs` tokens and 1024 `max_new_tokens`", Figures(1512, 603, 1024, 1627)),
        ("exceeded max context length by 100918 tokens", Figures(over=100_918)),
        ("Range of input length should be [1, 129024]", Figures(129_024)),
        ("context window exceeds limit (2013)", Figures()),
        ("input of 5000 tokens exceeds limit (4096)", Figures(4096, 5000, None, 5000)),
        ("context length 5000 is greater than max_seq_len 4096", Figures(4096, 5000, None, 5000)),
        ("upper bound for 3996 input tokens", Figures()),
        ("at most 24576 characters", Figures()),
        ("exceeded model token limit: 262144 (requested: 269030)", Figures(262_144, None, None, 269_030)),
        ("输入的 token 数 40000 超过模型最大长度 32768", Figures(32_768, 40_000, None, 40_000)),
        ("输入字数超过 20000 个字符", Figures()),
        ("limit exceeded, error code 1261", Figures()),
        ("error code: 5000 tokens exceed the limit of 4096", Figures(4096, 5000, None, 5000)),
        ("5000 of 4096 tokens", Figures(4096, 5000, None, 5000)),
        ("nothing", Figures()),
    ],
)
def test_a_figure_is_read_by_where_it_stands(text: str, figures: Figures) -> None:
    assert figures_of(marked(text)) == figures


def test_named_figures_win_over_those_in_the_text() -> None:
    assert figures_of(marked("context size of 10 tokens"), [("limit", 4096), ("prompt", 5000)]) == Figures(4096, 5000, None, 5000)


def test_the_error_s_own_number_is_no_window() -> None:
    assert figures_of(marked("context size is 20015"), codes=("20015",)).limit is None


@pytest.mark.parametrize(("tokens", "is_one"), [(None, False), (127, False), (128, True), (20_000_000, True), (20_000_001, False)])
def test_a_window_has_sane_bounds(tokens: int | None, is_one: bool) -> None:
    assert is_window(tokens) is is_one


@pytest.mark.parametrize(
    ("figures", "helps"),
    [
        (Figures(4097, 116, 4000), True),
        (Figures(4097, 5000, 100), False),
        (Figures(4097, 100, 0), False),
        (Figures(4097, 100), None),
        (Figures(None, 100, 4000), None),
        (Figures(4097, None, 4000, 4500), True),
        (Figures(4097, None, None, 4500), None),
        (Figures(4097), None),
    ],
)
def test_clamping_helps_where_the_prompt_alone_fits(figures: Figures, helps: bool | None) -> None:
    assert clamp_helps(figures) is helps


def test_the_request_is_the_sum_where_it_is_not_stated() -> None:
    assert completed(Figures(prompt=5, completion=7)).requested == 12
    assert completed(Figures(prompt=5, completion=7, requested=11)).requested == 11
    assert completed(Figures(completion=7)).requested is None
