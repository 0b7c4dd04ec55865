"""What a summarizer of the user's own is given, and what it may answer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ctxproxy.core.frames import Background, frame_text
from ctxproxy.core.messages import Directives, Message, make, read
from ctxproxy.core.own_summaries import SummaryRequest, draft_of, request_of
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import Need

SAID = make({"role": "user", "content": [{"type": "text", "text": "hello"}]})


def test_it_gets_copies_of_what_may_be_summarized() -> None:
    kept_out = read(b'{"role":"user","content":"never"}', Directives(never_summarize=True))
    ours = make({"role": "user", "content": frame_text(Background("earlier"), "en")})
    erased = Message(b"", {"role": "user"})
    earlier = Summary("t0", "what came before", "llm", "m", 3, 4, 0.0, 1.0, 2.0)
    asked = request_of(Need("t1", (ours, SAID, kept_out, erased), "zh", 300, earlier, 5.0, 6.0, ("a pin",)))
    assert asked == SummaryRequest(
        ({"role": "user", "content": [{"type": "text", "text": "hello"}]},), "what came before", "zh", 300, ("a pin",), 5.0, 6.0
    )
    asked.messages[0]["content"][0]["text"] = "changed"
    assert SAID.fields["content"][0]["text"] == "hello"
    assert request_of(Need("t1", (SAID,), "en", 300)).previous == ""


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("told", "told"),
        ({"content": "told", "count": 3}, "told"),
        (SimpleNamespace(content="told"), "told"),
        ({"content": 7}, ""),
        ({}, ""),
        (SimpleNamespace(), ""),
        (None, ""),
        (b"told", ""),
    ],
)
def test_it_may_answer_a_text_or_something_with_a_content(answer: object, text: str) -> None:
    assert draft_of(answer) == (text, "stop", False)
