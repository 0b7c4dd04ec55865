"""System 000, CowAgent: what its preset does, by row. Rows that other tests show are listed in docs/reference-systems.md."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from ctxproxy.config.policies import resolved
from ctxproxy.core.budget import tightened
from ctxproxy.core.frames import is_frame
from ctxproxy.core.messages import Message, text_of, tool_calls
from ctxproxy.core.openings import parted
from ctxproxy.core.pairing import alternates
from ctxproxy.core.plan import compacted_now, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Recovery
from ctxproxy.core.rescue_plans import trimmed
from ctxproxy.core.validity import violations
from tests.core.chains import Chain
from tests.core.histories import FILLER, assistant, call, count, result, transcript, user
from tests.proxy.conftest import StartProxy, proxy, upstream  # noqa: F401  fixtures
from tests.proxy.running import Running
from tests.scripted_upstream import Answer, Received, ScriptedUpstream, Stall

COWAGENT = resolved({}, {"preset": "cowagent"})
LIMIT = 50_000
SUMMARY = "They chose PostgreSQL, and the port is 8787."


def turn(n: int, words: int = 4) -> list[Message]:
    return [user(f"q{n} " + FILLER * words), call(f"c{n}", path=f"{n}.py"), result(f"c{n}", f"r{n}"), assistant(f"a{n} " + FILLER * words)]


def turns(total: int, words: int = 4) -> list[Message]:
    """So many turns, the last of them just asked."""
    return [message for n in range(total - 1) for message in turn(n, words)] + [user(f"q{total - 1}")]


def padded(messages: Sequence[Message], total: int) -> list[Message]:
    """The messages with so much more text in the first answer that they have exactly `total` tokens by the tests' count."""
    at = next(n for n, message in enumerate(messages) if message.role == "assistant" and not tool_calls(message))
    longer = assistant(text_of(messages[at]) + "x" * (4 * (total - sum(map(count, messages)))))
    out = [*messages[:at], longer, *messages[at + 1 :]]
    assert sum(map(count, out)) == total
    return out


def planned(history: Sequence[Message], limit: int = LIMIT, **keys: Any) -> Plan:
    policy = msgspec.structs.replace(COWAGENT, **keys)
    return plan(Chain(policy).situation(history, limit))


def names(made: Plan) -> list[str]:
    return [name for name, _ in made.actions]


def asked(messages: Sequence[Message]) -> list[str]:
    """The first words of the user messages, without what stands before them."""
    said = (text_of(parted(message)[-1]) for message in messages if message.role == "user" and not is_frame(message))
    return [text.split(" ")[0] for text in said]


def questions(first: int, end: int) -> list[str]:
    return [f"q{n}" for n in range(first, end)]


# --- triggers ----------------------------------------------------------------------------------------------------------------------


def test_000_04_up_to_50_000_tokens_nothing_is_done_and_above_something_is() -> None:
    assert COWAGENT.max_tokens == LIMIT
    assert not planned(padded(turns(10), LIMIT)).changed
    assert names(planned(padded(turns(10), LIMIT + 1))) == ["trim_turns"]


def test_000_05_20_turns_are_not_trimmed_and_21_are() -> None:
    assert COWAGENT.max_turns == 20
    assert not planned(turns(20)).changed
    assert names(planned(turns(21))) == ["trim_turns"]


def test_000_08_the_stages_run_in_order_and_the_list_is_valid_after_each() -> None:
    long = [user("q"), call("c"), result("c", "line of a log\n" * 3000), assistant("read")]
    made = planned([*turns(21)[:-1], *long, *turn(7), user("now")])
    assert names(made) == ["truncate_tool_results", "trim_turns"]
    chained = [m for n in range(6) for m in (user(f"q{n}"), call(f"c{n}"), result(f"c{n}", FILLER * 300), assistant(f"a{n}"))]
    short = planned([*chained, user("now")], 6000)
    assert names(short) == ["trim_turns", "turns_to_text"]
    assert violations(made.messages) == violations(short.messages) == []


# --- stage 1 -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chars", "cut"), [(20_000, False), (20_001, True)])
def test_000_09_a_historic_result_over_20_000_characters_keeps_head_and_tail_around_a_notice(chars: int, *, cut: bool) -> None:
    log = ("FIRST " + "a line of the log\n" * 2000)[: chars - 5] + " LAST"
    history = [user("look"), call("c"), result("c", log), assistant("seen"), user("now")]
    chain = Chain(COWAGENT)
    limit = sum(map(count, history)) - 1
    step = chain.ask(history, limit)
    sent = text_of(step.plan.messages[2])
    assert ("truncate_tool_results" in names(step.plan)) is cut
    if cut:
        assert sent.startswith("[COMPACTED: result of read, 20001 characters in full · ")
        assert all(part in sent for part in ("FIRST", "LAST", "lines omitted]"))
        assert chain.ask([*history, assistant("ok")], limit).sent[: len(step.sent)] == step.sent


def test_000_09_json_stays_json_and_lines_that_tell_of_failures_stay() -> None:
    rows = json.dumps([{"id": n} for n in range(3000)])
    failed = "ok\n" * 5000 + "ERROR: disk full\n" + "ok\n" * 5000
    made = planned([user("look"), call("c"), result("c", rows), call("d"), result("d", failed), assistant("seen"), user("now")], 12_000)
    assert names(made) == ["truncate_tool_results"]
    assert json.loads(text_of(made.messages[2]))
    assert "\nERROR: disk full\n" in text_of(made.messages[4])


def test_000_10_a_result_of_500_000_characters_in_the_current_turn_passes() -> None:
    history = [*turns(3)[:-1], user("look"), call("c"), result("c", "x" * 500_000)]
    made = planned(history, 125_200)
    assert made.fits
    assert made.messages[-3:] == tuple(history[-3:])


def test_000_11_a_result_is_looked_at_once_its_turn_is_over() -> None:
    chain = Chain(COWAGENT)
    history = [user("look"), call("c"), result("c", "a line of the log\n" * 2000)]
    assert not chain.ask(history, 9_100).plan.changed
    assert names(chain.ask([*history, assistant("seen " + FILLER * 9), user("and now?" + FILLER)], 9_100).plan) == ["truncate_tool_results"]


# --- stage 2 -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "kept"), [(21, 11), (22, 11)])
def test_000_12_over_the_most_turns_the_oldest_half_goes(before: int, kept: int) -> None:
    assert asked(planned(turns(before)).messages) == questions(before - kept, before)


def test_000_13_tool_chains_stay_whole() -> None:
    chain = Chain(COWAGENT)
    history: list[Message] = []
    for n in range(50):
        many = [message for step in range(n % 4) for message in (call(f"c{n}.{step}"), result(f"c{n}.{step}", FILLER * 9))]
        history += [user(f"q{n}"), *many]
        made = chain.ask(history, 3000).plan
        assert violations(made.messages) == []
        assert alternates(made.messages)
        history.append(assistant(f"a{n}"))


def test_000_15_the_summary_opens_the_first_kept_user_message_and_the_log_is_unchanged() -> None:
    chain = Chain(COWAGENT, summary_text=SUMMARY, late=0)
    history = turns(21)
    chain.ask(history, LIMIT)
    made = chain.ask([*history, assistant("a20"), user("q21")], LIMIT).plan
    first = made.transcript.entries[0]
    assert text_of(first.message).startswith("[Background: 10 earlier turns in short, not a new request]\nSummary up to ")
    assert SUMMARY in text_of(first.message)
    assert text_of(first.message).endswith(f"[End of the background; the message itself:]\n\n{text_of(history[40])}")
    assert first.tip == transcript(history).entries[40].tip
    assert chain.steps[-1].situation.reconciled.history[40].raw == history[40].raw
    parts = [{"type": "image_url", "image_url": {"url": "https://a.invalid/b.png"}}, {"type": "text", "text": "this?"}]
    pictured = [*history[:40], user(parts), *history[41:]]
    chain.ask(pictured, LIMIT)
    assert chain.ask([*pictured, assistant("a20"), user("q21")], LIMIT).plan.messages[0].content[1:] == parts


def test_000_17_it_takes_effect_at_the_next_request_where_the_same_turns_are_told_of() -> None:
    chain = Chain(COWAGENT, summary_text=SUMMARY, late=0)
    history = turns(21)
    for n in range(21, 24):
        made = chain.ask(history, LIMIT).plan
        assert asked(made.messages) == questions(10, n)
        assert (SUMMARY in text_of(made.messages[0])) is (n > 21)
        history += [assistant(f"a{n - 1}"), user(f"q{n}")]
    assert len(chain.summaries) == 1


def scripted(gate: asyncio.Event) -> Any:
    def script(call: Received) -> Any:
        return Stall(gate, Answer(SUMMARY)) if call.header("X-Purpose") == "summary" else Answer("an answer")

    return script


async def test_000_16_no_request_waits_for_a_summary(proxy: StartProxy, upstream: ScriptedUpstream) -> None:  # noqa: F811
    gate = asyncio.Event()
    upstream.script = scripted(gate)
    running: Running = await proxy(upstream, context={"preset": "cowagent"})
    history = [dict(message.fields) for message in turns(21, 12)]
    for n in range(3):
        said = await running.chat(history, session="s")
        assert said.status == 200
        assert said.actions.get("trim_turns", 0) == (0 if n == 1 else 1), "the second is the first one's decision replayed"
        history += [said.message, {"role": "user", "content": f"and {n}?"}]
        if n == 1:
            gate.set()  # only now does the summarizer answer
            await running.settled()
    asked_for = [call for call in upstream.calls if call.header("X-Purpose") != "summary"]
    assert [SUMMARY in str(call.messages) for call in asked_for] == [False, False, True]
    assert (await running.log("s"))[40] == f"user: {text_of(turns(21, 12)[40])}"


# --- stage 3 -----------------------------------------------------------------------------------------------------------------------


def test_000_18_what_is_still_too_long_after_the_turns_were_trimmed_goes_on() -> None:
    history = turns(22, 60)
    made = planned(history, sum(map(count, history)) // 3)
    assert asked(made.messages) == questions(16, 22), "22, 11, 6"
    assert made.fits


def test_000_19_few_turns_keep_what_was_asked_and_answered() -> None:
    chained = [m for n in range(3) for m in (user(f"q{n}"), call(f"c{n}"), result(f"c{n}", FILLER * 300), assistant(f"a{n}"))]
    done = planned([*chained, user("q3"), assistant("a3")], 4000)
    assert [(m.role, text_of(m)) for m in done.messages] == [
        (role, f"{role[0].replace('u', 'q')}{n}") for n in range(4) for role in ("user", "assistant")
    ]
    pending = [user("q3"), call("c3"), result("c3", "r"), call("c4"), result("c4", "r")]
    assert planned([*chained, *pending], 4000).messages[-5:] == tuple(pending)


def test_000_20_with_five_turns_or_more_half_of_them_go_and_are_told_of() -> None:
    chain = Chain(COWAGENT, summary_text=SUMMARY, late=0)
    history = padded(turns(10), 6001)
    first = chain.ask(history, 6000).plan
    assert asked(first.messages) == questions(5, 10)
    again = chain.ask([*history, assistant("a9"), user("q10")], 6000).plan
    assert text_of(again.messages[0]).startswith("[Background: 5 earlier turns")
    assert SUMMARY in text_of(again.messages[0])


# --- stage 4 -----------------------------------------------------------------------------------------------------------------------


def test_000_22_after_an_overflow_the_summary_still_reaches_the_context_whatever_was_trimmed_before() -> None:
    """R1: there, what had been written to memory was not told again in the context."""
    chain = Chain(COWAGENT, summary_text=SUMMARY, late=0)
    history = turns(22, 30)
    chain.ask(history, LIMIT)
    chain._deliver()
    s = chain.situation(history, LIMIT)
    made = trimmed(s, tightened(s.budget, s.budget.fixed + sum(s.counts) // 2), Recovery())
    assert SUMMARY in "".join(map(text_of, made.messages))


# --- facts of its source -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [400, 900, 2000, 4000])
def test_000_s5_towards_a_limit_turns_are_halved_then_made_text_then_dropped_and_the_last_one_is_kept(limit: int) -> None:
    history = [*turns(40, 40)[:-1], user("q39"), *(m for n in range(6) for m in (call(f"d{n}"), result(f"d{n}", FILLER * 9)))]
    made = planned(history, limit)
    assert made.fits
    assert asked(made.messages)[-1] == "q39"
    assert made.messages[-1].raw == history[-1].raw
    assert violations(made.messages) == []
    once = planned([user("q"), call("c"), result("c", "x")], 5)
    assert not once.changed, "nothing can shrink"


def test_000_s7_without_a_summarizer_the_turns_go_and_the_best_of_the_originals_stands_in() -> None:
    chain = Chain(COWAGENT)
    history = [user("The shop is number 4711 in Bergen. " + FILLER * 3), assistant("Noted: shop 4711, Bergen. " + FILLER), *turns(21)]
    situation = chain.situation(history, LIMIT)
    made = plan(replace(situation, summarizer="extractive"))
    assert made.fits
    assert "4711" in text_of(made.messages[0])
    assert made.wants == ""


def test_000_s8_the_same_words_said_again_are_kept() -> None:
    """R3: there, a second "continue" was taken for a duplicate."""
    history = [m for n in range(30) for m in (user("continue"), assistant(f"part {n}"))] + [user("continue")]
    made = planned(history)
    assert asked(made.messages) == ["continue"] * 16


def test_000_s9_after_every_cut_each_call_has_its_result() -> None:
    history = turns(30, 20)
    for limit in range(200, 6000, 400):
        assert violations(planned(history, limit).messages) == []


def test_000_s11_by_hand_it_compacts_whatever_the_size() -> None:
    chain = Chain(COWAGENT, summary_text=SUMMARY, late=0)
    history = turns(12)
    assert not chain.ask(history, LIMIT).plan.changed
    step = chain.ask(history, LIMIT, decide=compacted_now)
    assert step.plan.tokens_sent < step.plan.tokens_in
    assert asked(step.plan.messages)[-2:] == ["q10", "q11"]
    assert step.sent[-1] == history[-1].raw
    assert text_of(step.plan.messages[0]).startswith("[Background: ")
    again = chain.ask([*history, assistant("a"), user("q12")], LIMIT)
    assert again.sent[: len(step.sent)] == step.sent


def test_000_s20_the_answer_after_a_trim_is_kept() -> None:
    chain = Chain(COWAGENT)
    history = turns(21)
    chain.ask(history, LIMIT)
    step = chain.ask([*history, assistant("the answer after the trim"), user("q21")], LIMIT)
    assert "the answer after the trim" in [text_of(message) for message in step.plan.messages]


async def test_000_s21_what_was_trimmed_is_in_the_headers(proxy: StartProxy, upstream: ScriptedUpstream) -> None:  # noqa: F811
    running: Running = await proxy(upstream, context={"preset": "cowagent"}, summarizer={"kind": "off"})
    said = await running.chat([dict(message.fields) for message in turns(30, 20)], session="s")
    assert said.actions == {"trim_turns": 1}
    assert int(said.headers["X-Context-Tokens-Sent"]) < int(said.headers["X-Context-Tokens-In"])


# --- defects of its source that are none here --------------------------------------------------------------------------------------


def test_000_r2_facts_of_the_first_trim_are_in_the_prompt_after_the_fifth() -> None:
    chain = Chain(COWAGENT, summary_text=SUMMARY, late=0)
    history: list[Message] = []
    for n in range(70):
        history.append(user(f"q{n} " + FILLER))
        made = chain.ask(history, LIMIT).plan
        if len(chain.summaries) and n > 22:
            assert SUMMARY in text_of(made.messages[0]), n
        history.append(assistant(f"a{n}"))
    assert sum("trim_turns" in names(step.plan) for step in chain.steps) > 5
