"""Error positions: what is entered, what is not, and within which bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.overflow_envelope import MAX_BODY_BYTES, MAX_CHARS, MAX_DEPTH, MAX_STATEMENTS, document, statements, statuses_in
from ctxproxy.core.overflow_text import MAX_TEXT_CHARS


def said(value: object) -> list[str]:
    return [statement.said.text for statement in statements(value) if statement.said.text]


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ({"error": {"message": "one"}}, ["one"]),
        ({"Response": {"Error": {"Code": "X", "Message": "one"}}}, ["one"]),
        ({"error": "one", "error_type": "x"}, ["one"]),
        ({"base_resp": {"status_code": 7, "status_msg": "one"}}, ["one"]),
        ({"detail": [{"msg": "one", "input": "no", "loc": ["no"]}, {"msg": "two"}]}, ["one", "two"]),
        ({"error": {"metadata": {"raw": 'x {"error": {"message": "two"}} y'}}}, ["x y", "two"]),
        ({"error": {"message": "one", "details": "two"}}, ["one ; two"]),
        ({"error": {"message": 'broken { and {"message": "two"}'}}, ["broken { and", "two"]),
        ({"messages": [{"content": "no"}], "choices": [{"message": "no"}], "prompt": "no"}, []),
        ({"error": {"message": "one", "inner": {"error": {"message": "two"}}}}, ["one", "two"]),
        ({"ok": False, "result": {"error": "one"}}, ["one"]),
        ({"result": "no", "upstream": "no"}, []),
        ({"data": [{"message": "no"}]}, []),
        ({"data": {"message": "one"}}, ["one"]),
        ([{"error": "one"}, "two"], ["one", "two"]),
        (7, []),
    ],
)
def test_only_error_positions_are_read(value: object, texts: list[str]) -> None:
    assert said(value) == texts


def test_codes_and_named_figures_stand_with_their_message() -> None:
    (outer, inner) = statements({"code": 400, "error": {"type": "Exceed_Context", "message": "m", "n_ctx": 4096, "n_prompt_tokens": True}})
    assert outer.codes == ("400",)
    assert inner.codes == ("exceed_context",)
    assert inner.named == (("limit", 4096),)
    assert statuses_in([outer, inner]) == {400}


@pytest.mark.parametrize(
    ("item", "named"),
    [
        (4096, (("limit", 4096),)),
        ("4096", (("limit", 4096),)),
        ("4k", ()),
        ("", ()),
        ("４", ()),
        ("9" * 13, ()),
        (None, ()),
        (4096.5, ()),
        (4096.0, (("limit", 4096),)),
    ],
)
def test_a_named_figure_is_a_whole_number_or_its_digits(item: object, named: tuple[tuple[str, int], ...]) -> None:
    (only,) = statements({"message": "m", "context_length": item})
    assert only.named == named


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"", None),
        (b" \r\n", None),
        (b"x" * (MAX_BODY_BYTES + 1), None),
        (b'{"a":1}', {"a": 1}),
        ("\ufeff plain".encode(), "plain"),
        (b"\xff", "\ufffd"),
        (b'data: {"a":1}\r\n\r\nevent: x\ndata: text\n\ndata: [DONE]\n\n: ping\n\n', [{"a": 1}, "text"]),
    ],
)
def test_a_body_is_json_an_event_stream_or_text(body: bytes, value: object) -> None:
    assert document(body) == value


def test_depth_and_number_of_statements_are_bounded() -> None:
    deep: object = "bottom"
    for _ in range(MAX_DEPTH + 2):
        deep = {"error": deep}
    assert said(deep) == []
    wide = {"errors": [{"errors": [f"text {n}-{m}" for m in range(10)]} for n in range(10)]}
    assert len(statements(wide)) == MAX_STATEMENTS


def test_all_messages_together_are_bounded() -> None:
    value = {"errors": ["word " * 2_000 for _ in range(20)]}
    assert sum(len(text) for text in said(value)) <= MAX_CHARS + MAX_TEXT_CHARS


@given(
    st.recursive(
        st.text(max_size=20) | st.integers(), lambda inner: st.dictionaries(st.sampled_from(["error", "message", "raw"]), inner), max_leaves=9
    )
)
def test_wrapping_a_value_as_text_changes_nothing_that_is_said(value: object) -> None:
    plain = statements({"error": value})
    wrapped = statements({"error": json.dumps(value)} if isinstance(value, dict) else {"error": value})
    assert [text for text in (one.said.text for one in plain) if text] == [text for text in (one.said.text for one in wrapped) if text]
