from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core import headers
from ctxproxy.errors import BadRequest


def test_hop_by_hop_headers_end_at_this_hop():
    given_headers = [(name, "x") for name in sorted(headers.HOP_BY_HOP)] + [("Authorization", "Bearer k")]
    assert headers.request_headers(given_headers) == [("Authorization", "Bearer k")]
    assert headers.response_headers(given_headers, drop_length=False) == [("Authorization", "Bearer k")]


def test_what_connection_names_ends_at_this_hop_too():
    given_headers = [("Connection", "close, X-Once"), ("x-once", "1"), ("connection", "X-TWICE"), ("X-Twice", "2"), ("X-Stays", "3")]
    assert headers.request_headers(given_headers) == [("X-Stays", "3")]
    assert headers.response_headers(given_headers, drop_length=False) == [("X-Stays", "3")]


def test_host_length_expect_and_our_own_headers_are_not_forwarded():
    given_headers = [("HOST", "a"), ("content-length", "3"), ("Expect", "100-continue"), ("X-SESSION-ID", "s"), ("Accept", "*/*")]
    assert headers.request_headers(given_headers, {"X-Session-Id"}) == [("Accept", "*/*")]


def test_order_spelling_and_repetition_are_kept():
    given_headers = [("set-Cookie", "a"), ("X-A", ""), ("Set-cookie", "b")]
    assert headers.request_headers(given_headers) == given_headers
    assert headers.response_headers(given_headers, drop_length=True) == given_headers


@pytest.mark.parametrize(("value", "passed"), [("café", "café"), ("caf\udce9", "café"), ("caf\udce9 \udcff", "café ÿ"), ("plain", "plain")])
def test_bytes_that_are_no_utf8_are_read_as_latin_1(value, passed):
    assert headers.request_headers([("X-Name", value)]) == [("X-Name", passed)]
    assert headers.response_headers([("X-Name", value)], drop_length=False) == [("X-Name", passed)]


def test_the_length_of_an_answer_goes_only_when_told():
    given_headers = [("Content-Length", "3"), ("Content-Type", "a")]
    assert headers.response_headers(given_headers, drop_length=False) == given_headers
    assert headers.response_headers(given_headers, drop_length=True) == [("Content-Type", "a")]


def test_an_answers_header_that_we_set_ourselves_is_not_doubled():
    assert headers.response_headers([("x-context-actions", "none")], ["X-Context-Actions"], drop_length=False) == []


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([], None),
        ([""], None),
        (["  ", ""], None),
        (["  a b".strip().replace(" ", "-") + " \t"], "a-b"),
        (["s", "s"], "s"),
        (["s, s", " s"], "s"),
        (["s", ""], "s"),
        (["a.b_c:d@e/f=g-H9"], "a.b_c:d@e/f=g-H9"),
        (["x" * 128], "x" * 128),
    ],
)
def test_a_session_is_named_by_what_all_values_say(values, name):
    assert headers.session_name(values) == name


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("a b", "the character ' '"),
        ("ü", "the character '\\xfc'"),
        ("a\x00", "the character '\\x00'"),
        ("x" * 129, "129 characters"),
        ("a\n", "the character '\\n'"),
    ],
)
def test_a_wrong_session_name_is_refused_with_the_rule_and_the_header(value, fault):
    with pytest.raises(BadRequest) as caught:
        headers.session_name([value], "X-My-Session")
    assert caught.value.message == f"X-My-Session must be 1 to 128 of A-Z a-z 0-9 . _ : @ / = -; this one has {fault}"
    assert caught.value.param == "X-My-Session"


@pytest.mark.parametrize("values", [["a", "b"], ["a,b"], ["a", "A"]])
def test_two_different_session_names_are_refused(values):
    with pytest.raises(BadRequest, match="X-Session-Id is given 2 times with different values"):
        headers.session_name(values)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(max_size=20), max_size=3))
def test_whatever_the_header_holds_a_name_obeys_the_rule_or_is_refused(values):
    try:
        name = headers.session_name(values)
    except BadRequest:
        return
    assert name is None or (name.isascii() and 1 <= len(name) <= 128 and not set(name) & set(" ,;\r\n\0"))


@pytest.mark.parametrize(("values", "mode"), [([], None), ([" "], None), (["auto"], "auto"), (["FULL"], "full"), (["append", "Append"], "append")])
def test_a_mode_is_one_of_three(values, mode):
    assert headers.mode(values) == mode


@pytest.mark.parametrize("values", [["thin"], ["auto", "full"]])
def test_another_mode_is_refused(values):
    with pytest.raises(BadRequest, match="X-Context-Mode"):
        headers.mode(values)


@pytest.mark.parametrize(("values", "on"), [([], False), ([""], False), (["true"], True), ([" TRUE "], True), (["false"], False)])
def test_a_flag_is_true_or_false(values, on):
    assert headers.flag(values) is on


def test_a_flag_that_says_neither_is_refused():
    with pytest.raises(BadRequest, match="X-Context-Bypass must be one of true, false"):
        headers.flag(["yes"])
