"""A body that begins as an earlier one does is read as `wire.parse` reads it, or not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core import wire
from ctxproxy.core.fronts import Front, continued, front_of
from ctxproxy.errors import CtxproxyError
from tests.core.test_wire import requests

ONE = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"n":2}'
TWO = b'{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ok"},{"role":"user","content":"?"}],"n":3,"seed":1}'


def front(body: bytes) -> Front:
    found = front_of(wire.parse(body))
    assert found is not None
    return found


def is_read_alike(earlier: bytes, body: bytes) -> None:
    """Whether a body, going on from an earlier one, gives all that it gives by itself, and the same front."""
    before = front(earlier)
    assert before.begins(body)
    read = continued(before, body)
    assert read is not None
    whole = wire.parse(body)
    assert (read.request, [*read.request.values.items()]) == (whole, [*whole.values.items()])
    assert (read.end, read.before) == (front(body).end, front(body).before)


@pytest.mark.parametrize(
    ("earlier", "body"),
    [
        pytest.param(ONE, TWO, id="two messages more, and other values behind them"),
        pytest.param(ONE, ONE, id="the same again"),
        pytest.param(ONE, b'{"model":"m","messages":[{"role":"user","content":"hi"}]}', id="nothing behind the messages"),
        pytest.param(ONE, b'{"model":"m","messages":[{"role":"user","content":"hi"} ] , "n" : 1 } ', id="blanks"),
        pytest.param(b'{"messages":[\n {"role":"user"}\n]}', b'{"messages":[\n {"role":"user"},\n {"a":[{"b":"]"}]}\n]\n}', id="a printed list"),
        pytest.param(ONE, '{"model":"m","messages":[{"role":"user","content":"hi"},{"c":"é漢\\ud83c"}],"é":"漢"}'.encode(), id="other scripts"),
        pytest.param(ONE, b'{"model":"m","messages":[{"role":"user","content":"hi"}],"model":"other"}', id="a key twice"),
        pytest.param(
            b'{"messages":[{"x_context":{"pin":true},"a":1}]}', b'{"messages":[{"x_context":{"pin":true},"a":1},{"b":2}]}', id="x_context before"
        ),
        pytest.param(b'{"messages":[{"a":1}]}', b'{"messages":[{"a":1},{"x_context":{"pin":true},"b":2}]}', id="x_context behind"),
        pytest.param(b'\xef\xbb\xbf{"messages":[{"a":1}]}', b'\xef\xbb\xbf{"messages":[{"a":1},{"b":2}]}', id="a byte order mark"),
        pytest.param(b'{"messages":[1],"messages":[{"a":1}]}', b'{"messages":[1],"messages":[{"a":1},{"b":2}]}', id="an earlier list that is void"),
    ],
)
def test_what_goes_on_is_read_as_if_it_were_read_whole(earlier: bytes, body: bytes) -> None:
    is_read_alike(earlier, body)


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(b',"messages":[{"b":2}]}', id="a list in place of this one"),
        pytest.param(b',"\\u006dessages":[{"b":2}]}', id="the same, spelled otherwise"),
        pytest.param(b",}", id="a comma without a value"),
        pytest.param(b"", id="no end"),
        pytest.param(b"} x", id="more than one value"),
    ],
)
def test_what_only_the_whole_body_tells_is_not_guessed(behind: bytes) -> None:
    assert continued(front(b'{"messages":[{"a":1}]}'), b'{"messages":[{"a":1}]' + behind) is None


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b" x]}", id="no comma"),
        pytest.param(b",]}", id="a comma without a message"),
        pytest.param(b",1]}", id="no message"),
        pytest.param(b',{"b":2}', id="a list without its end"),
        pytest.param(b',{"b":"\xff"}]}', id="no UTF-8"),
        pytest.param(b',{"x_context":1}]}', id="x_context against its rule"),
        pytest.param(b'],"model":{"a":tru}}', id="a value that is none"),
    ],
)
def test_what_is_wrong_is_left_to_the_whole_reading(tail: bytes) -> None:
    assert continued(front(b'{"messages":[{"a":1}]}'), b'{"messages":[{"a":1}' + tail) is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"messages":[]}', id="no message"),
        pytest.param(b'{"messages":[{"a":1}],"messages":[{"a":1}]}', id="the same list twice"),
        pytest.param(b'{"b":[{"a":1}],"messages":[{"a":1}]}', id="the same list under another key before"),
        pytest.param(b'{"b":{"c":[{"a":1}],"d":2},"messages":[{"a":1}]}', id="the same list within a value before"),
        pytest.param(b'{"messages":[0],"b":1,"messages":[{"a":1}]}', id="a void list with something in between"),
    ],
)
def test_where_the_messages_stand_has_to_be_sure(body: bytes) -> None:
    assert front_of(wire.parse(body)) is None


def test_a_body_that_was_not_read_as_a_whole_has_no_front_of_its_own() -> None:
    going_on = continued(front(ONE), TWO)
    assert going_on is not None
    assert front_of(going_on.request) is None


def test_it_begins_only_what_has_the_same_bytes_up_to_its_last_message() -> None:
    assert front(ONE).begins(TWO)
    assert not front(TWO).begins(ONE)
    assert not front(ONE).begins(ONE.replace(b"hi", b"ho"))


def test_it_is_weighed_by_its_bytes_and_its_messages() -> None:
    assert front(ONE).size_bytes < front(TWO).size_bytes < 4 * len(TWO) + 3 * 2000 + 1


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests(), requests(), st.booleans())
def test_any_two_bodies_are_read_alike_or_not_at_all(first, second, cut) -> None:
    body, other = first[0].encode(), second[0].encode()
    before = front_of(wire.parse(body))
    if before is None:
        return
    bodies = [body, other, body[: before.end] + b"]}", body[: before.end] + b"," + json.dumps({"role": "user"}).encode() + body[before.end :]]
    for one in [*bodies, *([body[: before.end] + other] if cut else [])]:
        read = continued(before, one) if before.begins(one) else None
        if read is not None:
            try:
                assert read.request == wire.parse(one)
            except CtxproxyError as error:
                raise AssertionError(f"read, and yet wrong: {one!r}") from error
