from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core.messages import identity, make, tool_calls
from ctxproxy.core.reply import ReplyAssembler, Usage, reply_from_body
from ctxproxy.core.sse import SseReader
from tests.shared_dir import shared


def assembled(*events, name=""):
    assembler = ReplyAssembler()
    for event in events:
        assembler.feed(event if isinstance(event, bytes) else json.dumps(event).encode(), name)
    return assembler.result()


def chunk(delta=None, *, index=0, finish=None, **extra):
    return {"model": "m", "choices": [{"index": index, "delta": delta or {}, "finish_reason": finish}], **extra}


def fields(result, at=0):
    return dict(result.choices[at].message.fields)


DONE = b"[DONE]"


def test_a_plain_stream_is_put_together():
    result = assembled(chunk({"role": "assistant", "content": ""}), chunk({"content": "A"}), chunk({"content": "B"}), chunk(finish="stop"), DONE)
    assert result.choices[0].message.raw == b'{"role":"assistant","content":"AB"}'
    assert (result.choices[0].finish_reason, result.complete, result.model, result.error) == ("stop", True, "m", None)


def test_reasoning_stays_under_its_own_key_and_never_becomes_content():
    for key in ("reasoning_content", "reasoning"):
        result = assembled(chunk({"content": None, key: "one "}), chunk({key: "two"}), chunk(finish="stop"), DONE)
        assert fields(result) == {"role": "assistant", "content": "", key: "one two"}
        assert identity(result.choices[0].message) == identity(make({"role": "assistant", "content": ""}))


def test_choices_are_never_mixed():
    result = assembled(
        chunk({"content": "Az"}, index=0), chunk({"content": "Bl"}, index=1), chunk({"content": "ure"}, index=0), chunk({"content": "ue"}, index=1)
    )
    assert [(choice.index, choice.message.content) for choice in result.choices] == [(0, "Azure"), (1, "Blue")]


def test_tool_calls_of_two_choices_are_never_mixed():
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}
    rest = {"index": 0, "function": {"arguments": "}"}}
    result = assembled(chunk({"tool_calls": [call]}, index=1), chunk({"tool_calls": [call]}, index=0), chunk({"tool_calls": [rest]}, index=1))
    assert [tool_calls(choice.message)[0].arguments for choice in result.choices] == ["{", "{}"]


def test_choices_without_an_index_are_told_apart_by_their_place():
    both = {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}
    assert [choice.message.content for choice in assembled(both, both).choices] == ["aa", "bb"]


def test_a_call_has_null_content_and_keeps_its_extra_fields():
    call = {
        "index": 0,
        "id": "g",
        "type": "function",
        "function": {"name": "w", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "S"}},
    }
    result = assembled(chunk({"role": "assistant", "tool_calls": [call]}), chunk(finish="tool_calls"), DONE)
    assert fields(result) == {"role": "assistant", "content": None, "tool_calls": [{key: value for key, value in call.items() if key != "index"}]}


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ([{"refusal": "I "}, {"refusal": "can't"}], {"content": None, "refusal": "I can't"}),
        (
            [{"function_call": {"name": "f", "arguments": "{"}}, {"function_call": {"arguments": "}"}}],
            {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
        ),
        ([{"audio": {"id": "au", "transcript": "h"}}, {"audio": {"data": "UklG"}}, {"audio": None}], {"content": None, "audio": {"id": "au"}}),
        ([{"content": "a", "vendor": {"x": "1"}}, {"content": "b", "vendor": {"x": "2"}}], {"content": "ab", "vendor": {"x": "12"}}),
        ([{"content": [{"type": "text", "text": "a"}]}, {"content": "b"}], {"content": [{"type": "text", "text": "ab"}]}),
        ([{}], {"content": ""}),
        ([{"role": "", "content": "\ud83c"}, {"content": "\udf78"}], {"content": "🍸"}),
        ([{"content": "half \ud83c"}, {"content": "emoji"}], {"content": "half \ud83cemoji"}),
        ([{"tool_calls": ["odd", None]}, {"tool_calls": {}}], {"content": ""}),
    ],
)
def test_every_kind_of_delta_is_taken_in(deltas, message):
    assert fields(assembled(*[chunk(delta) for delta in deltas])) == {"role": "assistant", **message}


def test_one_plain_completion_as_the_only_event_is_taken_in():
    answer = {"role": "assistant", "content": "all", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    result = assembled({"choices": [{"index": 0, "message": answer, "finish_reason": "stop"}]})
    assert fields(result) == answer and result.complete


def test_a_running_total_beside_the_deltas_is_not_counted_twice():
    both = [{"choices": [{"index": 0, "delta": {"content": "b"}, "message": {"content": total}}]} for total in ("b", "bb")]
    end = {"choices": [{"index": 0, "message": {"content": "bb"}, "finish_reason": "stop"}]}
    assert fields(assembled(*both, end))["content"] == "bb"


USAGE = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


@pytest.mark.parametrize(
    ("event", "usage"),
    [
        ({"choices": [], "usage": USAGE}, Usage(10, 3, 4)),
        ({"choices": [{"index": 0, "delta": {}, "usage": USAGE}]}, Usage(10, 3, 4)),
        ({"choices": [], "x_groq": {"usage": USAGE}}, Usage(10, 3, 4)),
        ({"choices": [], "x_groq": 1, "usage": {"prompt_tokens": 10}}, Usage(10, 0, None)),
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_cache_hit_tokens": 5}}, Usage(10, 3, 5)),
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 6}}, Usage(10, 3, 6)),
        ({"usage": {"prompt_tokens": 10, "completion_tokens": None, "prompt_tokens_details": None, "cached_tokens": True}}, Usage(10, 0, None)),
        ({"usage": None}, None),
        ({"usage": {"prompt_tokens": "10"}}, None),
    ],
)
def test_usage_is_found_where_servers_put_it(event, usage):
    assert assembled(event).usage == usage
    assert reply_from_body(json.dumps({"choices": [], **event}).encode()).usage == usage


def test_the_last_usage_counts_and_null_takes_none_back():
    result = assembled({"usage": {"prompt_tokens": 1}}, {"usage": {"prompt_tokens": 1, "completion_tokens": 9}}, {"usage": None})
    assert result.usage == Usage(1, 9)


HALF = chunk({"content": "half"})


@pytest.mark.parametrize(
    ("events", "complete"),
    [
        ([HALF], False),
        ([HALF, chunk(finish="stop")], True),
        ([HALF, chunk(finish="length"), DONE], True),
        ([HALF, DONE], True),
        ([HALF, b" [DONE] "], True),
        ([HALF, chunk(finish=""), chunk(finish="null")], False),
        ([HALF, chunk(index=1, finish="stop")], False),
        ([HALF, chunk(index=1, finish="stop"), DONE], True),
        ([HALF, chunk(finish="error"), DONE], False),
        ([HALF, b'{"choices":[{"ind', DONE], False),
        ([HALF, b'{"choices":[{"ind'], False),
        ([HALF, chunk(finish="stop"), b'{"usage":{"pro'], True),
        ([HALF, b"ping", b"", b"[1]", DONE], True),
        ([HALF, b"[DO"], False),
        ([DONE], True),
        ([], False),
    ],
)
def test_an_answer_is_complete_with_its_finish_reason_or_done(events, complete):
    assert assembled(*events).complete is complete


ERRORS = [
    {"error": {"message": "upstream overloaded", "code": 529}},
    {"error": "overloaded"},
    {"object": "error", "message": "too long", "code": 400},
    {"type": "error", "message": "x"},
    {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop", "error": {"code": 502}}]},
]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_object_in_the_stream_is_kept_and_the_answer_is_not_complete(error):
    text = json.dumps(error).encode()
    result = assembled(HALF, text, b'{"error":"a second one"}', chunk(finish="stop"), DONE)
    assert (result.error, result.complete) == (text, False)
    assert fields(result)["content"] == "half"


@pytest.mark.parametrize("data", [b'{"message":"too long"}', b"plain words"])
def test_an_event_named_error_is_one_whatever_it_holds(data):
    assembler = ReplyAssembler()
    assembler.feed(data, "error")
    assembler.feed(DONE)
    assert (assembler.result().error, assembler.result().complete) == (data, False)


def test_null_and_empty_errors_are_none():
    assert assembled({**HALF, "error": None}, {**chunk(finish="stop"), "error": {}}).error is None


@pytest.mark.parametrize(
    "event", [[], 7, {"choices": {}}, {"choices": [7]}, {"choices": [{"delta": 7, "message": 8}]}, {"choices": [{"index": None}]}, {"model": 5}]
)
def test_events_of_odd_shape_break_nothing(event):
    result = assembled(event, HALF)
    assert result.choices[0].message.content == "half"


def test_data_nested_too_deeply_breaks_nothing():
    result = assembled(b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}", HALF, DONE)
    assert result.choices[0].message.content == "half" and not result.complete


def read_stream(chunks):
    reader, assembler = SseReader(), ReplyAssembler()
    for one in chunks:
        for event in reader.feed(one):
            assembler.feed(event.data, event.name)
    if last := reader.finish():
        assembler.feed(last.data, last.name)
    return assembler.result()


DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.none() | st.text(max_size=4),
        "reasoning_content": st.text(max_size=3),
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "index": st.integers(0, 2),
                    "id": st.sampled_from(["a", "b", ""]),
                    "function": st.fixed_dictionaries(
                        {}, optional={"name": st.sampled_from(["f", "g"]), "arguments": st.sampled_from(["{", "}", "{}", "", '"x":1'])}
                    ),
                },
            ),
            max_size=2,
        ),
    },
)
CHUNKS = st.builds(
    lambda delta, index, finish: chunk(delta, index=index, finish=finish), DELTAS, st.integers(0, 1), st.sampled_from([None, None, "stop"])
)


def test_a_stream_is_finished_as_soon_as_all_its_choices_are() -> None:
    assembler = ReplyAssembler()
    told = []
    for event in (chunk({"content": "a"}), chunk({"content": "b"}, index=1), chunk(finish="stop"), chunk(index=1, finish="stop")):
        assembler.feed(json.dumps(event).encode())
        told.append(assembler.is_finished)
    assert told == [False, False, False, True]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CHUNKS, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]), st.integers(1, 50), st.booleans())
def test_any_chunking_of_a_stream_gives_the_same_reply(chunks, end, chunk_bytes, ascii_only):
    text = "".join(f": ping{end}data: {json.dumps(one, ensure_ascii=ascii_only)}{end}{end}" for one in chunks) + f"data: [DONE]{end}{end}"
    stream = text.encode("utf-8", "replace")
    assert read_stream([stream[at : at + chunk_bytes] for at in range(0, len(stream), chunk_bytes)]) == read_stream([stream])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CHUNKS, max_size=8))
def test_the_message_is_always_one_that_can_be_sent_back(chunks):
    for choice in assembled(*chunks).choices:
        message = json.loads(choice.message.raw)
        assert message == choice.message.fields and message["role"] == "assistant"
        assert isinstance(message["content"], str) or message["tool_calls"]


ODD_BYTES = st.sampled_from([b'"', b"{", b"}", b",", b"1", b"\\", b"\xff", b" ", b"\n", b"null", b"[DONE]", b'"error":1,', b'"type":0,'])
ONE_BY_ONE = CHUNKS | st.builds(
    lambda content, more, beside: {**chunk({"content": content, **more}), **beside},
    st.text(max_size=3) | st.none() | st.integers(),
    st.sampled_from(
        [{}, {"role": "assistant"}, {"role": 1}, {"refusal": None}, {"reasoning": "r"}, {"reasoning_content": ""}, {"audio": {}}, {"other": "x"}]
    ),
    st.sampled_from([{}, {"object": "chat.completion.chunk"}, {"object": "error"}, {"usage": USAGE}, {"model": None}, {"type": 1}]),
)
DAMAGED = st.builds(
    lambda one, at, odd, ascii_only: (text := json.dumps(one, ensure_ascii=ascii_only).encode("utf-8", "replace"))[:at] + odd + text[at:],
    ONE_BY_ONE,
    st.integers(0, 150),
    ODD_BYTES,
    st.booleans(),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ONE_BY_ONE.map(lambda one: json.dumps(one).encode()) | DAMAGED | st.sampled_from([b"", b"[DONE]", b" [DONE] "]), max_size=8))
def test_all_events_at_once_give_the_same_reply_as_one_by_one(datas):
    slow, quick = ReplyAssembler(), ReplyAssembler()
    for data in datas:
        slow.feed(data)
    quick.feed_all(datas)
    assert quick.result() == slow.result()
    assert (quick.done, quick.has_output, quick.is_finished) == (slow.done, slow.has_output, slow.is_finished)


@pytest.mark.parametrize(
    "events",
    [
        [chunk({"role": "assistant", "content": ""}), chunk({"content": "A"}), chunk({"content": "B"}), chunk({"content": "C"}, finish="stop"), DONE],
        [chunk({"content": "A"}, finish="null"), chunk({"content": "B", "role": "assistant"}), chunk(finish="length")],
        [{"choices": [{"delta": {"content": "A"}}]}, chunk({"content": "B"}), {**chunk({"content": "C"}), "model": "other"}],
        [chunk({"content": "A"}, index=1), chunk({"content": "B"}), chunk({"content": [{"type": "text", "text": "x"}]}), chunk({"content": "y"})],
        [chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in "{}[]"] + [chunk({"content": "A"})],
        [chunk({"content": "A"}), {"error": {"message": "overloaded"}}, chunk({"content": "B"})],
        [*(chunk({"content": None, "reasoning_content": part}) for part in "ab"), chunk({"content": "A", "reasoning_content": "c"})],
        [chunk({"reasoning": "a"}), chunk({"reasoning": ""}), chunk({"content": "A"}), chunk({"content": "B"}), chunk({"reasoning": "b"})],
        [chunk({"content": ""}), chunk({"reasoning_content": "", "content": None}), chunk({"content": "A"})],
        [chunk({"content": "A"}), {"choices": [{"index": 0, "message": {"content": "all"}}]}, {"usage": USAGE}],
    ],
)
def test_each_kind_of_event_among_plain_ones_is_taken_in_as_by_itself(events):
    quick = ReplyAssembler()
    quick.feed_all([event if isinstance(event, bytes) else json.dumps(event).encode() for event in events])
    assert quick.result() == assembled(*events)


def test_a_long_text_is_not_kept_in_its_pieces():
    half, other = json.dumps(chunk({"content": "\ud83c"})).encode(), json.dumps(chunk({"content": "\udf78"})).encode()
    words = [json.dumps(chunk({"content": f"word {n} "})).encode() for n in range(20_000)]
    assembler = ReplyAssembler()
    tracemalloc.start()
    for at in range(0, len(words), 100):
        assembler.feed_all(words[at : at + 100])
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assembler.feed_all([half, *words[:200], half, other])
    text = "".join(f"word {n} " for n in range(20_000))
    assert held < 2 * len(text)
    assert assembler.result().choices[0].message.content.startswith(text + "\ud83cword 0")
    assert assembler.result().choices[0].message.content.endswith("word 199 🍸")


def test_asking_early_changes_nothing():
    assembler = ReplyAssembler()
    assembler.feed(json.dumps(HALF).encode())
    assert assembler.result().choices[0].message.content == "half"
    assembler.feed(json.dumps(HALF).encode())
    assert assembler.result().choices[0].message.content == "halfhalf"


def test_a_plain_answer_keeps_the_exact_bytes_of_its_message():
    raw = b'{ "role":"assistant", "content" : "a\\u0062", "logprob": 1.50, "refusal": null }'
    body = (
        b'{"model":"m","choices":[{"index":1,"message":{"content":"B"},"finish_reason":"stop"},{"index":0,"message":'
        + raw
        + b',"finish_reason":"length"}]}'
    )
    result = reply_from_body(body)
    assert [(choice.index, choice.finish_reason) for choice in result.choices] == [(0, "length"), (1, "stop")]
    assert result.choices[0].message.raw == raw
    assert (result.complete, result.model, result.error) == (True, "m", None)


def test_a_plain_answer_with_a_lone_surrogate_is_read():
    assert reply_from_body(b'{"choices":[{"message":{"role":"assistant","content":"bad \\udc8f"}}]}').choices[0].message.content == "bad \udc8f"


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_body_gives_a_reply_that_is_not_complete(error):
    body = json.dumps(error).encode()
    assert (reply_from_body(body).error, reply_from_body(body).complete) == (body, False)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"choices":{}}', b'{"choices":[1]}', b'{"choices":[{"message":"x"}]}', b'{"object":"list","data":[]}']
)
def test_a_body_that_is_no_answer_gives_no_reply(body):
    assert reply_from_body(body) is None


def test_an_answer_without_choices_or_without_a_message_is_not_complete():
    assert not reply_from_body(b'{"choices":[]}').complete
    assert reply_from_body(b'{"choices":[{"text":"legacy"}]}').choices == ()


def test_a_failed_choice_is_not_complete():
    assert not reply_from_body(b'{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}').complete


def field_stream(part):
    if isinstance(part, str):
        return part
    if "text" in part:
        return part["text"]
    return f"data: {json.dumps(part.get('event', part))}\n\n"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("047", {"content": "", "complete": True}),
        ("127", {"content": "Azure.", "complete": True}),
        ("131", {"content": "ok", "complete": True}),
        ("133", {"content": "par", "complete": False}),
        ("134", {"content": "The password must be ", "complete": False}),
        ("137", {"calls": [("a", "get_weather", '{"c":"Paris"}'), ("b", "get_time", '{"tz":"JST"}')], "complete": True}),
        ("138", {"calls": [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')], "complete": True}),
        ("140", {"content": "ABCD", "complete": True}),
        ("143", {"content": "t0 t1 t2 t3 t4 t5 t6 t7 ", "complete": True}),
    ],
)
def test_the_recorded_oddities_of_the_field_are_read(case, expected):
    path = next(shared("acceptance/field_cases/cases").glob(f"{case}_*.json"))
    recorded = json.loads(path.read_text())["upstream"]["replies"][0]
    stream = "".join(field_stream(part) for part in recorded.get("sse") or recorded["chunks"]).encode()
    result = read_stream([stream])
    assert result == read_stream([stream[at : at + 1] for at in range(len(stream))])
    assert result.complete is expected["complete"]
    if "calls" in expected:
        assert list(tool_calls(result.choices[0].message)) == expected["calls"]
    else:
        assert result.choices[0].message.content == expected["content"]


def test_what_has_come_of_a_stream_can_be_asked_at_any_time() -> None:
    assembler = ReplyAssembler()
    assert (assembler.has_output, assembler.done) == (False, False)
    assembler.feed(b'{"choices":[{"index":0,"delta":{"content":"a"}}]}')
    assert (assembler.has_output, assembler.done) == (True, False)
    assembler.feed(b"[DONE]")
    assert (assembler.has_output, assembler.done) == (True, True)
