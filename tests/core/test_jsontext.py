from __future__ import annotations

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core import jsontext

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)
DEEP = b"[" * 100_000 + b"]" * 100_000


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES)
def test_what_is_encoded_decodes_to_the_same_value(value):
    assert jsontext.decode(jsontext.encode(value)) == value


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES)
def test_a_canonical_text_is_ascii_and_means_the_value(value):
    assert json.loads(jsontext.canonical(value).decode("ascii")) == value


@pytest.mark.parametrize("text", ["".join(map(chr, range(128))), *map(chr, range(128)), "é", "字", "\ud83c", ""])
def test_a_text_by_itself_is_canonical_alike(text):
    assert jsontext.canonical_text(text) == jsontext.canonical(text)


@given(st.text(st.characters(max_codepoint=200)))
def test_any_text_by_itself_is_canonical_alike(text):
    assert jsontext.canonical_text(text) == jsontext.canonical(text)


def test_a_canonical_text_does_not_depend_on_key_order():
    assert jsontext.canonical({"a": 1, "b": [2]}) == jsontext.canonical({"b": [2], "a": 1})


@pytest.mark.parametrize("text", [b'"half \\ud83c"', b"1e999", b"[NaN]", b'\xef\xbb\xbf"mark"'])
def test_what_only_the_standard_library_reads_is_read(text):
    assert jsontext.decode(text) == json.loads(text) or math.isnan(jsontext.decode(text)[0])


@pytest.mark.parametrize("text", [b"", b"{", b'"\xff"', b"[1,]", b"01", DEEP])
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        jsontext.decode(text)


def test_a_lone_surrogate_stays_escaped_when_encoded():
    assert jsontext.encode({"a": "\ud83c"}) == b'{"a":"\\ud83c"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b' { "a" :  1.00e5 , "b" : [ 1 , 2 ] } ', {"a": b"1.00e5", "b": b"[ 1 , 2 ]"}),
        (b'{"a":1,"b":2,"a":3}', {"a": b"3", "b": b"2"}),
        (b"{}", {}),
        (b" { } ", {}),
        (b'{"\\ud83c" : "\\ud83c\\u00e9" , "b":NaN}', {"\ud83c": b'"\\ud83c\\u00e9"', "b": b"NaN"}),
        (b'{"a":"\\ud83c","b" : { } , "a":2 }', {"a": b"2", "b": b"{ }"}),
        ('\ufeff{"ä":"😀"}'.encode(), {"ä": '"😀"'.encode()}),
    ],
)
def test_members_keep_the_exact_text_of_each_value(text, expected):
    found = {key: bytes(value) for key, value in jsontext.members(text).items()}
    assert found == expected and list(found) == list(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"[]", []),
        (b'[ 1.0 ,{"a": 2},"x" ]', [b"1.0", b'{"a": 2}', b'"x"']),
        (b'[ NaN ,{"a": 2},"\\ud83c" ]', [b"NaN", b'{"a": 2}', b'"\\ud83c"']),
        (b"\xef\xbb\xbf[ ]", []),
    ],
)
def test_items_keep_the_exact_text_of_each_element(text, expected):
    assert [bytes(item) for item in jsontext.items(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b'{"a"',
        b'{"a":',
        b'{"a":1',
        b'{"a":1,',
        b'{"a":1,}',
        b'{"a":NaN} x',
        b"{1:NaN}",
        b'{"a" NaN}',
        b'{"a":NaN "b":1}',
        b"\xff",
        b'{"\xff":1}',
    ],
)
def test_what_is_no_object_has_no_members(text):
    with pytest.raises(ValueError):
        jsontext.members(text)


def test_a_value_nested_too_deeply_is_a_value_error():
    with pytest.raises(ValueError, match="deeply"):
        jsontext.members(b'{"a":' + DEEP + b"}")


def test_items_of_an_object_are_a_value_error():
    with pytest.raises(ValueError):
        jsontext.items(b'{"a":1}')


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(VALUES, max_size=5), st.sampled_from(["", " ", "\n\t ", "\r\n"]))
def test_items_are_the_same_by_either_reader(values, blank):
    texts = [json.dumps(value) for value in values]
    array = "[" + f"{blank},{blank}".join(texts) + blank + "]"
    assert [bytes(item).decode() for item in jsontext.items(array.encode())] == texts
    with_nan = f"[{blank}NaN{blank}" + "".join(f",{blank}{text}{blank}" for text in texts) + "]"
    assert [bytes(item).decode() for item in jsontext.items(with_nan.encode())] == ["NaN", *texts]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", []),
        (' {"a" : 1.50 ,"b":[1, {"c": "}"}]}\n', [("a", "1.50"), ("b", '[1, {"c": "}"}]')]),
        ('{"a":1,"a":"\\ud83c"}', [("a", "1"), ("a", '"\\ud83c"')]),
        ('{"漢字":"漢字"}', [("漢字", '"漢字"')]),
    ],
)
def test_the_spans_of_an_object_are_where_the_texts_of_its_values_stand(text, found):
    assert [(key, text[start:end]) for key, start, end in jsontext.spans(text)] == found


def test_the_spans_of_an_array_are_where_the_texts_of_its_elements_stand():
    text = '[ 1,"a, b" , {"c":[2]} ]'
    assert [text[start:end] for start, end in jsontext.item_spans(text)] == ["1", '"a, b"', '{"c":[2]}']


@pytest.mark.parametrize("text", ["", "[]", '{"a":1', '{"a":1}x', "{1:2}", '{"a" 1}', '"text"'])
def test_spans_of_what_is_no_object_are_refused(text):
    with pytest.raises(ValueError, match=r"."):
        list(jsontext.spans(text))
