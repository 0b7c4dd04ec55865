from __future__ import annotations

import json

import pytest

from ctxproxy.core.fragments import MAX_DEPTH, Calls, add, built


def merged(*fragments):
    tree = {}
    for fragment in fragments:
        add(tree, fragment)
    return built(tree)


def part(kind, **fields):
    return {"type": kind, **fields}


@pytest.mark.parametrize(
    ("fragments", "whole"),
    [
        ([{"content": "a"}, {"content": "b"}], {"content": "ab"}),
        ([{"content": "a"}, {"content": None}, {}], {"content": "a"}),
        ([{"content": None}], {}),
        ([{"role": "assistant"}, {"role": "assistant"}], {"role": "assistant"}),
        ([{"role": ""}, {"role": None}, {"role": "assistant"}], {"role": "assistant"}),
        ([{"a": {"b": "x"}}, {"a": {"b": "y", "c": 1}}], {"a": {"b": "xy", "c": 1}}),
        ([{"n": 1}, {"n": 2}], {"n": 2}),
        ([{"a": 1}, {"a": "x"}], {"a": "x"}),
        ([{"a": "x"}, {"a": {"b": 1}}], {"a": {"b": 1}}),
        ([{"a": 1}, {"a": ["x", 2]}, {"a": ["y"]}], {"a": ["x", 2, "y"]}),
        ([{"a": [["x"], ["y"]]}], {"a": [["x"], ["y"]]}),
    ],
)
def test_texts_go_on_objects_fill_up_and_other_values_are_replaced(fragments, whole):
    assert merged(*fragments) == whole


@pytest.mark.parametrize(
    ("fragments", "parts"),
    [
        ([[part("text", text="a")], [part("text", text="b")]], [part("text", text="ab")]),
        ([[part("text", text="a")], "b", "", [part("text", text="c")]], [part("text", text="abc")]),
        (["a", [part("text", text="b")]], [part("text", text="ab")]),
        (["", [part("text", text="b")]], [part("text", text="b")]),
        (
            [[part("thinking", thinking=[part("text", text="h")])], [part("thinking", thinking=[part("text", text="m")])], "yes"],
            [part("thinking", thinking=[part("text", text="hm")]), part("text", text="yes")],
        ),
        ([["bare"], [part("text", text="a")]], ["bare", part("text", text="a")]),
        ([[part("image", url="a")], [part("image", url="b")]], [part("image", url="a"), part("image", url="b")]),
        ([[{"url": "a"}], [{"url": "b"}]], [{"url": "a"}, {"url": "b"}]),
    ],
)
def test_content_parts_go_on_where_they_are_running_texts(fragments, parts):
    assert merged(*[{"content": fragment} for fragment in fragments]) == {"content": parts}


def test_elements_with_an_index_go_on_where_index_and_type_agree():
    details = [
        [part("reasoning.text", index=0, text="a", signature="S")],
        [part("reasoning.text", index=0, text="b", signature="S")],
        [part("reasoning.encrypted", index=0, data="E")],
        [{"index": 0, "text": "c"}, "odd", {"index": 1, "text": "d"}],
    ]
    assert merged(*[{"reasoning_details": one} for one in details])["reasoning_details"] == [
        part("reasoning.text", index=0, text="abc", signature="S"),
        part("reasoning.encrypted", index=0, data="E"),
        "odd",
        {"index": 1, "text": "d"},
    ]


def test_what_lies_too_deep_is_replaced_as_a_whole():
    def nested(text):
        value = text
        for _ in range(MAX_DEPTH * 3):
            value = {"a": value}
        return value

    assert merged(nested("x"), nested("y")) == nested("y")


def test_building_leaves_the_fragments_ready_for_more():
    tree = {}
    add(tree, {"a": "x"})
    assert built(tree) == {"a": "x"}
    add(tree, {"a": "y"})
    assert built(tree) == {"a": "xy"}


def piece(*, index=None, id=None, name=None, args=None, **extra):
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    head = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**head, **({"function": function} if function else {}), **extra}


def calls_of(*pieces):
    calls = Calls()
    for one in pieces:
        calls.feed(one)
    return [(call.get("id"), call["function"]["name"], call["function"]["arguments"]) for call in calls.built()]


TWO = [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]
TABLE = {
    "as OpenAI streams them": (
        [
            piece(index=0, id="a", name="f", args=""),
            piece(index=0, args='{"x"'),
            piece(index=0, args=":1}"),
            piece(index=1, id="b", name="g", args='{"y":2}'),
        ],
        TWO,
    ),
    "fragments of two calls mixed": (
        [piece(index=0, id="a", name="f"), piece(index=1, id="b", name="g"), piece(index=0, args='{"x":1}'), piece(index=1, args='{"y":2}')],
        TWO,
    ),
    "no index (case 137)": ([piece(id="a", name="f", args='{"x":1}'), piece(id="b", name="g", args='{"y":'), piece(args="2}")], TWO),
    "one index for two ids (case 138)": (
        [piece(index=0, id="a", name="f", args='{"x":1}'), piece(index=0, id="b", name="g", args='{"y":'), piece(index=1, id="b", args="2}")],
        TWO,
    ),
    "the second starts again at 0": (
        [piece(index=0, id="a", name="f", args='{"x":1}'), piece(index=0, id="b", name="g", args='{"y":'), piece(index=0, args="2}")],
        TWO,
    ),
    "a second id under one index with its name to come": (
        [piece(index=0, id="a", name="f", args='{"x":1}'), piece(index=0, id="b"), piece(index=0, name="g", args='{"y":2}')],
        TWO,
    ),
    "the id in every fragment": (
        [piece(index=0, id="a", name="f", args='{"x"'), piece(index=0, id="a", args=":1}"), piece(index=1, id="b", name="g", args='{"y":2}')],
        TWO,
    ),
    "id and name in every fragment": (
        [
            piece(index=0, id="a", name="f", args='{"x"'),
            piece(index=0, id="a", name="f", args=":1}"),
            piece(index=1, id="b", name="g", args='{"y":2}'),
        ],
        TWO,
    ),
    "empty id and name behind the first fragment": (
        [piece(index=0, id="a", name="f", args='{"x"'), piece(index=0, id="", name="", args=":1}"), piece(index=1, id="b", name="g", args='{"y":2}')],
        TWO,
    ),
    "a new id for every fragment": ([piece(index=0, id="a", name="f", args='{"x"'), piece(index=0, id="zz", args=":1}")], TWO[:1]),
    "a late id": ([piece(index=0, name="f", args='{"x"'), piece(index=0, id="a", args=":1}")], TWO[:1]),
    "a late id without an index": ([piece(name="f", args='{"x"'), piece(id="a", args=":1}")], TWO[:1]),
    "ids interleaved without an index": (
        [piece(id="a", name="f", args='{"x"'), piece(id="b", name="g", args='{"y"'), piece(id="a", args=":1}"), piece(id="b", args=":2}")],
        TWO,
    ),
    "an index that no call began": ([piece(index=0, id="a", name="f", args='{"x"'), piece(index=5, args=":1}")], TWO[:1]),
    "no ids, no indexes": (
        [piece(name="f", args='{"x":1}'), piece(name="g", args='{"y":'), piece(args="2}")],
        [(None, *TWO[0][1:]), (None, *TWO[1][1:])],
    ),
    "no ids, one function twice": ([piece(name="f", args="{}"), piece(name="f", args="{}")], [(None, "f", "{}")] * 2),
    "no ids, one index, one function twice": (
        [piece(index=0, name="f", args="[]"), piece(index=0, name="f", args="{}")],
        [(None, "f", "[]"), (None, "f", "{}")],
    ),
    "the same id for two calls": (
        [piece(index=0, id="f", name="f", args='{"x":1}'), piece(index=1, id="f", name="f", args='{"x":2}')],
        [("f", "f", '{"x":1}'), ("f", "f", '{"x":2}')],
    ),
    "the name once more at the end": ([piece(index=0, id="a", name="f", args='{"x":1}'), piece(index=0, name="f", args="")], TWO[:1]),
    "id and name once more at the end, no index": ([piece(id="a", name="f", args='{"x":1}'), piece(id="a", name="f", args="")], TWO[:1]),
    "no id, the name in every fragment": ([piece(name="f", args='{"x"'), piece(name="f", args=":1}")], [(None, "f", '{"x":1}')]),
    "a name in pieces": ([piece(index=0, id="a", name="get_"), piece(index=0, name="time"), piece(index=0, args="{}")], [("a", "get_time", "{}")]),
    "arguments as an object": ([piece(id="a", name="f", args={"x": 1})], TWO[:1]),
    "a character cut between two fragments": (
        [piece(id="a", name="f", args='{"x":"\ud83c'), piece(args='\udf78"}')],
        [("a", "f", '{"x":"🍸"}')],
    ),
    "no arguments": ([piece(index=0, id="a", name="f", args="")], [("a", "f", "")]),
    "arguments that only look whole": ([piece(name="f", args='{"x":{}'), piece(name="f", args="}")], [(None, "f", '{"x":{}}')]),
    "a fragment of nothing": ([{}], [(None, "", "")]),
    "parts of other types": ([{"index": "0", "id": 7, "function": {"name": 1, "arguments": None}}], [(None, "", "")]),
}


@pytest.mark.parametrize(("pieces", "calls"), TABLE.values(), ids=TABLE.keys())
def test_tool_calls_are_told_apart(pieces, calls):
    assert calls_of(*pieces) == calls


@pytest.mark.parametrize("args", ["]" * 5, "[" * 100_000 + "]" * 100_000], ids=["broken", "too deep"])
def test_arguments_that_cannot_be_read_are_not_whole(args):
    assert calls_of(piece(name="f", args=args), piece(name="f", args="x")) == [(None, "f", args + "x")]


def test_extra_fields_of_a_call_are_kept_and_the_index_is_not():
    calls = Calls()
    calls.feed(piece(index=0, id="a", type="function", name="f", args="{", extra_content={"google": {"thought_signature": "SIG"}}))
    calls.feed(piece(index=0, type="function", args="}", extra_content={"google": {"thought_signature": "SIG"}}))
    calls.feed({"index": 0, "function": {"strict": True}, "vendor": None})
    assert calls.built() == [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "f", "arguments": "{}", "strict": True},
            "extra_content": {"google": {"thought_signature": "SIG"}},
        }
    ]


def test_a_custom_tool_call_keeps_its_shape():
    calls = Calls()
    calls.feed({"index": 0, "id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls"}})
    calls.feed({"index": 0, "custom": {"input": " -l"}})
    assert calls.built() == [{"id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}]


def test_a_call_without_a_type_gets_the_one_of_its_shape():
    calls = Calls()
    calls.feed(piece(id="a", type="", name="f", args="{}"))
    assert calls.built()[0]["type"] == "function"
    assert json.dumps(calls.built())
