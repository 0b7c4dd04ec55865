"""System 002, AG-Kit: what its preset does, by row. Rows that other tests show are listed in docs/reference-systems.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest

from ctxproxy.config.policies import resolved
from ctxproxy.core.budget import budget
from ctxproxy.core.frames import is_frame
from ctxproxy.core.messages import Message, text_of, tool_calls
from ctxproxy.core.plan import compacted_now, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.validity import violations
from tests.core.chains import Chain
from tests.core.histories import FILLER, assistant, call, count, result, talk, transcript, user
from tests.proxy.conftest import StartProxy, proxy, upstream  # noqa: F401  fixtures
from tests.proxy.running import Running
from tests.scripted_upstream import Answer, ScriptedUpstream

AGKIT = resolved({}, {"preset": "agkit"})
LIMIT = 150_000


def debugging(steps: int, chars: int = 2000) -> list[Message]:
    """A debugging session: one request, then calls, their results and now and then a word of the user's."""
    messages = [user("Find out why checkout fails with error E4711 and fix it. Never touch src/legacy.")]
    for n in range(steps):
        messages += [call(f"c{n}", path=f"src/module_{n}.py"), result(f"c{n}", f"line of module {n}\n" * (chars // 20))]
        if n % 5 == 4:
            messages += [assistant(f"Module {n} is fine; the timeout there is {30 + n} s. " + FILLER * 20), user(f"Good, go on with part {n}.")]
    return messages if messages[-1].role == "user" else [*messages, assistant("So far so good."), user("And now?")]


def sized(messages: Sequence[Message], total: int) -> list[Message]:
    """The messages with their first answer so long that all have exactly `total` tokens by the tests' count."""
    at = next(n for n, m in enumerate(messages) if m.role == "assistant" and isinstance(m.content, str))
    missing = total - sum(map(count, messages))
    assert missing >= 0
    longer = [*messages[:at], assistant(text_of(messages[at]) + "x" * (4 * missing)), *messages[at + 1 :]]
    assert sum(map(count, longer)) == total
    return longer


def planned(history: Sequence[Message], limit: int = LIMIT, **changes: Any) -> Plan:
    return plan(replace(Chain(AGKIT).situation(history, limit), **changes))


def stages(made: Plan) -> list[str]:
    return [name for name, _ in made.actions]


# ---------------------------------------------------------------- triggers
def test_002_04_all_ratios_are_of_the_pre_rot_threshold_or_of_what_the_window_leaves() -> None:
    wide = budget(AGKIT, 1_000_000, None, 0)
    assert (wide.limit, wide.trigger, wide.summarize) == (150_000, 120_000, 142_500)
    narrow = budget(AGKIT, 128_000, 8_000, 0)
    assert (narrow.limit, narrow.trigger, narrow.summarize) == (120_000, 96_000, 114_000)


@pytest.mark.parametrize(("tokens", "acts"), [(119_999, False), (120_000, True), (142_500, True)])
def test_002_06_at_120000_tokens_it_compacts_and_at_119999_it_does_not(tokens: int, acts: bool) -> None:
    made = planned(sized(debugging(200), tokens))
    assert made.changed is acts
    assert bool(made.actions) is acts


def test_002_07_below_the_trigger_all_goes_out_in_full_detail() -> None:
    history = sized(debugging(200), 119_999)
    assert planned(history).messages == tuple(history)


def test_002_08_between_80_and_95_percent_only_what_can_be_undone_is_done() -> None:
    made = planned(sized(debugging(200), 130_000))
    assert set(stages(made)) <= {"compact_tool_results", "compact_messages"}
    assert not any(map(is_frame, made.messages))
    assert not made.transcript.left


def test_002_05_and_09_from_95_percent_on_what_compaction_cannot_bring_down_is_summarized() -> None:
    plain = [user("Talk with me about boats."), assistant("Gladly."), *talk(1400, 8)]
    asked = [m if m.role == "user" else assistant(text_of(m)[:40]) for m in plain]
    exact = sized(asked, 142_500)
    made = planned([*exact[:1], assistant("Gladly."), *sized(asked[2:], 142_500 - sum(map(count, asked[:2])))])
    assert "summarize_middle" in stages(made)
    assert sum(map(is_frame, made.messages)) == 1
    assert made.wants, "a model's summary takes the place of the stand-in"


def test_002_29_and_s2_compaction_comes_first_then_it_is_measured_again_then_summarized() -> None:
    told = [m for n in range(1240) for m in (assistant("yes"), user(f"wish {n} " + FILLER * 10))]
    history = [*debugging(18), *told, assistant("so"), user("now?")]
    assert 0.95 * LIMIT < sum(map(count, history)) < LIMIT
    made = planned(history)
    order = stages(made)
    assert order.index("compact_tool_results") < order.index("summarize_middle")
    enough = planned(sized(debugging(240), 145_000))
    assert "summarize_middle" not in stages(enough), "96 % of which compaction takes most"


def test_002_s3_compaction_that_gains_little_is_followed_by_a_summary_at_once() -> None:
    much, little = large_result_and_wishes(20_000, 1050), large_result_and_wishes(4_000, 1250)
    for history, tokens in ((much, 20_000), (little, 5_000)):
        assert 0.80 * LIMIT < sum(map(count, history)) < 0.95 * LIMIT
        assert (count(history[2]) > 0.05 * LIMIT) is (tokens == 20_000)
    assert "summarize_middle" not in stages(planned(much))
    assert "summarize_middle" in stages(planned(little))


def large_result_and_wishes(lines: int, wishes: int) -> list[Message]:
    """A result that can be compacted, then words of the user's that cannot."""
    told = [m for n in range(wishes) for m in (assistant("yes"), user(f"wish {n} " + FILLER * 9))]
    return [user("go"), call("c"), result("c", "line\n" * lines), *told, assistant("so"), user("now?")]


def test_002_15_switched_off_it_never_acts() -> None:
    off = msgspec.structs.replace(AGKIT, preset="off")
    assert not plan(Chain(off).situation(sized(debugging(200), 149_000), LIMIT)).changed


def test_002_16_by_hand_it_acts_below_the_trigger() -> None:
    history = sized(debugging(150), 100_000)
    assert compacted_now(Chain(AGKIT).situation(history, LIMIT)).actions


# ---------------------------------------------------------------- compaction
def test_002_11_a_placeholder_tells_its_topic_and_keeps_role_and_call() -> None:
    history = sized(debugging(200), 130_000)
    made = planned(history)
    assert violations(made.messages) == []
    pairs = [(a, b) for a, b in zip(history, made.messages, strict=True) if a.raw != b.raw]
    assert pairs
    for before, after in pairs:
        assert after.role == before.role
        assert after.fields.get("tool_call_id") == before.fields.get("tool_call_id")
        assert [c.id for c in tool_calls(after)] == [c.id for c in tool_calls(before)]
    first = next(text_of(after) for before, after in pairs if before.role == "tool")
    assert first.startswith("[COMPACTED: result of read src/module_0.py · ")
    assert planned(history).messages == made.messages, "the same bytes every time"


def test_002_12_what_a_compaction_saved_is_known_for_each_message() -> None:
    chain, history = Chain(AGKIT), sized(debugging(200), 130_000)
    made = chain.ask(history, LIMIT).plan
    originals = {entry.tip: entry for entry in transcript(history).entries}
    edited = [entry for entry in made.transcript.entries if entry.origin == "edited"]
    saved = sum(originals[entry.tip].tokens - entry.tokens for entry in edited)
    assert saved == made.tokens_in - made.tokens_sent == sum(tokens for _, tokens in made.saved)
    assert f"· {originals[edited[0].tip].tokens} tokens · {edited[0].tip[:16]}]" in text_of(edited[0].message)


def test_002_28_the_newest_five_messages_and_the_whole_of_their_groups_stay() -> None:
    big = [part for n in range(60) for part in (call(f"c{n}", path=f"{n}.py"), result(f"c{n}", "w " * 4000))]
    history = [user("go"), *big, assistant("x " * 4000), user("y"), call("d", path="d.py"), result("d", "z " * 4000)]
    made = planned(history, 8_000)
    assert made.changed
    assert list(made.messages[-6:]) == history[-6:], "the fifth last is a result: its call stays with it"
    assert made.messages[-7].raw != history[-7].raw


@pytest.mark.parametrize("messages", [3, 5])
def test_002_s1_five_messages_or_fewer_are_left_alone(messages: int) -> None:
    history = [user("a"), assistant("b"), user("c"), assistant("d"), user("e")][-messages:]
    assert not planned(sized(history, 146_000)).changed


def test_002_s4_the_summarizer_reads_originals_and_no_placeholders() -> None:
    chain = Chain(AGKIT, late=10_000)
    history = sized([user("The invoice number is INV-20391-B."), *debugging(60)], 45_000)
    chain.ask(history, 50_000)
    compacted = chain.steps[-1].plan
    assert stages(compacted) == ["compact_tool_results"] or "compact_messages" in stages(compacted)
    told = [m for n in range(400) for m in (assistant("yes"), user(f"wish {n} " + FILLER * 10))]
    step = chain.ask([*history, *told, assistant("so"), user("now?")], 50_000)
    assert "summarize_middle" in stages(step.plan)
    (frame,) = [text_of(m) for m in step.plan.messages if is_frame(m)]
    assert "COMPACTED" not in frame
    assert "src/module_" in frame or "INV-20391-B" in frame


def test_002_s7_no_call_is_parted_from_its_result() -> None:
    for total in (121_000, 144_000, 149_000, 200_000):
        made = planned(sized(debugging(200), total))
        assert made.changed
        assert violations(made.messages) == []


# ---------------------------------------------------------------- long sessions
def test_002_23_a_debugging_session_of_200_messages_keeps_its_key_facts() -> None:
    chain, history = Chain(AGKIT, late=10_000), debugging(100, 1500)
    assert len(history) > 200
    history.insert(1, assistant("The cause is a race in src/queue/worker.py, line 218."))
    for end in range(11, len(history) + 1, 10):
        ends = [n for n in range(end, len(history) + 1) if history[n - 1].role in ("user", "tool")]
        step = chain.ask(history[: ends[0]] if ends else history, 9_000)
        assert step.plan.fits
    view = "\n".join(map(text_of, step.plan.messages))
    assert step.plan.changed
    for fact in ("E4711", "src/legacy", "src/queue/worker.py"):
        assert fact in view


def test_002_25_two_thousand_messages_go_on_without_failure() -> None:
    chain, history = Chain(AGKIT, late=10_000), debugging(850, 400)
    assert len(history) > 2000
    asked = [n for n in range(1, len(history) + 1) if history[n - 1].role == "user"]
    for end in asked[::2]:
        step = chain.ask(history[:end], 12_000)
        assert step.plan.fits
        assert violations(step.plan.messages) == []
        assert step.plan.failed == ()
    decisions = [step for step in chain.steps if step.plan.checkpoint]
    assert 0 < len(decisions) < len(chain.steps) / 2


# ---------------------------------------------------------------- through the proxy
def spoken(turns: int, words: int = 60) -> list[dict[str, Any]]:
    said = [{"role": role, "content": f"{role} {n}: " + "some plain words " * words} for n in range(turns) for role in ("user", "assistant")]
    return [*said, {"role": "user", "content": "and now?"}]


async def test_002_13_a_summary_is_shown_with_all_its_fields(proxy: StartProxy, upstream: ScriptedUpstream) -> None:  # noqa: F811
    running = await proxy(upstream, context={"preset": "agkit", "max_tokens": 3000})
    upstream.script = lambda made: Answer("They spoke of plain words." if made.header("X-Purpose") == "summary" else "ok")
    await running.chat(spoken(12), session="s")
    await running.settled()
    (shown,) = (await running.admin("GET", "sessions/s"))[1]["summaries"]
    assert (shown["text"].splitlines()[0], shown["kind"], shown["model"]) == ("They spoke of plain words.", "llm", "tested-model")
    assert shown["messages"] > 2
    assert shown["tokens"] > 0
    assert len(shown["tip"]) == 32
    start, end, made_at = (datetime.fromisoformat(text) for text in (*shown["time_range"].values(), shown["timestamp"]))
    assert start <= end <= made_at


async def test_002_s5_compactions_summaries_and_the_last_gain_are_counted(proxy: StartProxy, upstream: ScriptedUpstream) -> None:  # noqa: F811
    running = await proxy(upstream, context={"preset": "agkit", "max_tokens": 3000})
    upstream.script = lambda made: Answer("They spoke of plain words." if made.header("X-Purpose") == "summary" else "ok")
    await running.chat(spoken(1), session="s")
    assert figure(running, "ctxproxy_compactions_total") == 0
    answer = await running.chat(spoken(12), session="s")
    await running.settled()
    assert figure(running, "ctxproxy_compactions_total") == 1
    gain = int(answer.headers["X-Context-Tokens-In"]) - int(answer.headers["X-Context-Tokens-Sent"])
    assert figure(running, "ctxproxy_last_compaction_gain_tokens") == gain > 0
    assert figure(running, "ctxproxy_summaries_total", result="made") == 1


def figure(running: Running, name: str, **labels: str) -> float:
    return running.state.metrics.registry.get_sample_value(name, labels) or 0.0
