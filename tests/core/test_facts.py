"""Exact values: what is found, what is not, and which weigh most."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctxproxy.core.facts import anchors, kind_of, rank
from tests.core.histories import assistant, call, result, user


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("see https://x.example/a/b?c=1.", "https://x.example/a/b?c=1"),
        ("mail ann.lee@mail.example now", "ann.lee@mail.example"),
        ("in /etc/app/main.conf", "/etc/app/main.conf"),
        ("in src/app.py line", "src/app.py"),
        (r"at C:\Users\ann\x.txt", r"C:\Users\ann\x.txt"),
        ("order #W123", "#W123"),
        ("订单A-101已出库", "A-101"),
        ("version v1.2.3-rc1 is", "v1.2.3-rc1"),
        ("commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "9fceb02d0ae598e95dc970b74767f19372d61af8"),
        ("failed with ECONNREFUSED", "ECONNREFUSED"),
        ("error E1234", "E1234"),
        ("on March 5, 2024 we", "March 5, 2024"),
        ("on 5 March 2024 we", "5 March 2024"),
        ("on 2024-05-01 we", "2024-05-01"),
        ("在2024年5月1日", "2024年5月1日"),
        ("costs $1,200.50 now", "$1,200.50"),
        ("about 12 GB of", "12 GB"),
        ("共500元", "500元"),
        ("call separability_matrix()", "separability_matrix"),
        ("the class TimeDelta is", "TimeDelta"),
        ("use --dry-run", "--dry-run"),
        ("std::vector", "std::vector"),
        ('{"user_id": "XEWRD9"}', "XEWRD9"),
        ("phone 010-84659299", "010-84659299"),
        ("number 45451592", "45451592"),
        ("at 10:37 today", "10:37"),
        ("open setup.cfg", "setup.cfg"),
        ("in os.path.join here", "os.path.join"),
    ],
)
def test_exact_values_are_found(text: str, value: str) -> None:
    assert value in anchors(text)


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "and/or",
        "e.g. this",
        "the 7th",
        "一句中文",
        "a 1 b",
        "$",
        "@someone",
        "</rules>",
        "x" * 300 + "1",
        "a1." * 100,
        "12",
        "--",
        "naïve",
        "é9"[:1],
        "1-2",
    ],
)
def test_plain_words_are_no_values(text: str) -> None:
    assert anchors(text) == {}


def test_a_part_of_a_value_is_not_found_again() -> None:
    assert list(anchors("pay $1,200.50 on March 5, 2024")) == ["March 5, 2024", "$1,200.50"]


def test_the_users_values_weigh_more_than_a_tools_and_repeated_ones_more_than_single() -> None:
    messages = [
        user("Ticket BUG-4711."),
        call("c", path="src/a.py"),
        result("c", "noise ZZ-1 ZZ-2"),
        assistant("Fixed BUG-4711 in src/a.py, see AA-9."),
    ]
    order = rank(messages)
    assert order[0] == "BUG-4711"
    assert order.index("src/a.py") < order.index("ZZ-1")
    assert order.index("AA-9") < order.index("ZZ-2")


@given(st.text(max_size=300))
@example("$0\x1f")
@example("5\x1f%")
def test_what_is_found_stands_in_the_text(text: str) -> None:
    assert all("".join(value.split()) in "".join(text.split()) for value in anchors(text))
    assert all(kind_of(word) is None or word for word in text.split())


@pytest.mark.parametrize("trap", ["1,", "1", "a.", " ", ",    ", "http://", "a_", "must ", "1 ", "@", "/", "9-a", "a::", "<a", "不"])
def test_time_grows_with_the_length_and_no_faster(trap: str) -> None:
    """Bounded in steps, not in seconds: eight times the text may not take more than a hundred times as long."""

    def took(length: int) -> float:
        text = trap * (length // len(trap))
        start = time.process_time()
        anchors(text)
        return time.process_time() - start

    assert took(80_000) < 100 * max(took(10_000), 0.001)
