"""What is answered to commands."""

from __future__ import annotations

from dataclasses import replace

from ctxproxy.core.command_answers import (
    SHOWN_CHARS,
    SHOWN_FACTS,
    SHOWN_MESSAGES,
    Standing,
    answer,
    compacted_line,
    context_lines,
    fact_lines,
    pin_lines,
    say,
    short,
    why_lines,
)
from ctxproxy.core.commands import is_own_answer
from ctxproxy.core.messages import make
from ctxproxy.core.phrases import Found
from ctxproxy.core.plan import compacted_now, plan
from ctxproxy.core.points import MemoryPoint, Point
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Pin, SessionKey, WindowBelief
from ctxproxy.core.why import Held, StandIn, State, Why
from tests.core.chains import FIXED_TOKENS, Chain
from tests.core.histories import FILLER, assistant, call, count, result, talk, user

BELIEF = WindowBelief("https://a", "m", 32_000, "learned", 0.9, 1.0)
SYSTEM = make({"role": "system", "content": "Be short."})


def test_the_context_is_counted_by_messages_turns_roles_characters_and_tokens() -> None:
    history = [user("look"), call("c", path="a.py"), result("c", "seen"), assistant("done"), user("and?")]
    s = Chain(Policy(), [SYSTEM]).situation(history, 9000)
    lines = context_lines(Standing("s", s, plan(s), BELIEF, 2), "en")
    tokens = FIXED_TOKENS + count(SYSTEM) + sum(map(count, history))
    assert lines == [
        "Context of s",
        "- messages: 5 in 2 turns (assistant 2, tool 1, user 2), 41 characters",
        "- system messages: 1, always sent",
        f"- tokens: {tokens} in all, {tokens} as it is sent now",
        f"- budget: {s.budget.prompt_tokens} of a window of 32000 (learned), {s.budget.reserve} kept for the reply; "
        f"compaction begins at {s.budget.trigger} of history",
        "- compacted: nothing, all messages are sent as they came",
        "- pins: 0 · preset: adaptive · keys of its own: 2",
    ]


def test_what_was_compacted_and_cleared_is_told() -> None:
    s = Chain(Policy(preset="cowagent", keep_recent_turns=1)).situation(talk(8), 9000)
    made = compacted_now(s)
    line = context_lines(Standing("s", s, made, BELIEF, 0), "en")[4]
    assert "summarized" in line
    assert "compacted: nothing" not in line
    gone = replace(s, cleared=frozenset(s.reconciled.tips[:6]))
    assert ", 6 left out" in context_lines(Standing("s", gone, plan(gone), BELIEF, 0), "en")[4]
    empty = Chain(Policy()).situation([], 9000)
    assert "0 条，0 轮（-）" in context_lines(Standing("会话", empty, plan(empty), BELIEF, 0), "zh")[1]


def test_a_compaction_is_told_by_turns_and_tokens_before_and_after() -> None:
    chain = Chain(Policy(preset="cowagent", keep_recent_turns=1))
    s = chain.situation(talk(8), 9000)
    made = compacted_now(s)
    said = compacted_line(s, made, "en")
    assert said.startswith(f"Compacted: 9 turns with {made.tokens_in} tokens are sent as {len(made.transcript.turns)} turns with {made.tokens_sent} ")
    assert "by_hand 1, " in said
    short_one = chain.situation([user("hi")], 9000)
    assert compacted_line(short_one, compacted_now(short_one), "en").startswith("Nothing to compact: 1 turns with ")


def test_pins_are_listed_by_number_each_on_one_line() -> None:
    assert pin_lines([], "en") == ["There are no pinned texts."]
    lines = pin_lines([Pin(1, "keep\n this", 0.0), Pin(7, FILLER * 20, 0.0)], "zh")
    assert lines[:2] == ["固定文本：", "1. keep this"]
    assert len(lines[2]) == len("7. ") + SHOWN_CHARS
    assert lines[2].endswith("…")
    assert short(FILLER) == FILLER.strip()


def test_an_answer_is_known_again_in_either_language() -> None:
    for language in ("en", "zh"):
        text = answer(say("cleared", language, messages=3), "more")
        assert is_own_answer(assistant(text))
        assert is_own_answer(assistant([{"type": "text", "text": f"\n{text}"}]))
        assert not is_own_answer(user(text))
    assert not is_own_answer(assistant("I know of [ctxproxy]"))


def held(at: int, state: State, stands_in: StandIn | None) -> Held:
    found = Found("content", f"… the berth is {at} …", f"The berth is {at}.")
    return Held(f"{at:032x}", "user", 1.0, at, "b", 1, found, state, "s", "left out by s", None, (), stands_in)


def test_why_tells_of_the_newest_messages_what_stands_in_for_them_and_how_it_comes_back() -> None:
    frame = StandIn(0, "frame", holds=False, excerpt="a berth was named")
    told = Why("s", "berth", 30, tuple(held(at, "summarized", frame) for at in range(1, 8)), 2, (), ())
    lines = why_lines(told, "en")
    assert lines[:2] == ["“berth” stands in 9 of the 30 messages of this session.", "The next request does not carry it."]
    assert lines[2:4] == [
        "- user, turn 3: … the berth is 3 …\n  now summarized: left out by s; the original is under the marker 0000000000000000",
        "  in its place: a berth was named",
    ]
    assert len(lines) == 2 + 2 * SHOWN_MESSAGES + 1
    assert lines[-1] == "To have it back: `/pin The berth is 7.`"


def test_why_has_nothing_to_bring_back_where_nothing_is_missing() -> None:
    sent = Why("s", "berth", 3, (held(1, "sent", None),), 0, (2,), ())
    assert why_lines(sent, "en")[1:] == ["The next request carries it.", why_lines(sent, "en")[2]]
    assert why_lines(Why("s", "berth", 3, (), 0, (), ()), "zh") == ["“berth”出现在本会话 3 条消息中的 0 条里。"]


def fact(kind: str, key: str, value: str) -> MemoryPoint:
    return MemoryPoint(1, Point(kind, key, value, "aa", 1.0, 1.0), SessionKey("ab" * 16, "s"))  # type: ignore[arg-type]


def test_facts_are_listed_by_key_and_anchors_only_where_they_are_asked_for() -> None:
    facts = [fact("entity", "name", "Ann"), fact("anchor", "A-4711", "id"), fact("rule", "use tabs", "Use tabs!")]
    assert fact_lines(facts, "", "en", of_user=False) == ["What is known from what was said here:", "- name: Ann", "- use tabs: Use tabs!"]
    assert fact_lines(facts, "a-47", "zh", of_user=True) == ["从该用户的全部对话中得知：", "- A-4711: id"]
    assert fact_lines(facts, "nothing", "en", of_user=False) == ["Nothing that is noted holds “nothing”."]
    assert fact_lines([], "", "en", of_user=False) == ["Nothing is noted yet."]
    many = [fact("number", f"n{n}", str(n)) for n in range(SHOWN_FACTS + 3)]
    lines = fact_lines(many, "", "en", of_user=False)
    assert (len(lines), lines[-1]) == (SHOWN_FACTS + 2, "… and 3 more; `/facts <text>` looks for some")
