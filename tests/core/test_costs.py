"""What prompts cost with a cache, and which changes are worth the part of it that they break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from ctxproxy.core.budget import Budget, budget
from ctxproxy.core.costs import FEWEST_REQUESTS, MOST_REQUESTS, cost, is_cold, seen_part, sent_before, shared_tokens, summary_cost, trigger, worth_it
from ctxproxy.core.messages import ROOT, Message, chain, identity, make
from ctxproxy.core.pipeline import Outcome
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.recall_titles import STAGE, TAKEN_OUT
from ctxproxy.core.records import Checkpoint
from ctxproxy.core.sessions import Reconciled, join_full
from ctxproxy.core.situation import Situation
from ctxproxy.core.transcript import Entry, Transcript
from tests.core.chains import Chain
from tests.core.histories import assistant, call, count, long_turn, result, talk, user

LIMIT = 1000
SHORTENED = Outcome(Transcript(()), (("compact_messages", 1),))
SUMMARIZED = Outcome(Transcript(()), (("summarize", 1),))


@dataclass(frozen=True)
class Weighed:
    """A case whose prompt has so many messages of a request before, and new ones."""

    reconciled: Reconciled
    policy: Policy
    idle_s: float = 0.0

    @property
    def budget(self) -> Budget:
        return budget(msgspec.structs.replace(self.policy, max_tokens=LIMIT), 100_000, None, 0)


def messages(number: int) -> list[Message]:
    """Exchanges of a user and an assistant, told apart by their number."""
    return [make({"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n}"}) for n in range(number)]


def joined(history: Sequence[Message], known: int) -> Reconciled:
    return join_full(history, chain(ROOT, map(identity, history)), known)


def prompt(case: Weighed, sizes: Sequence[int]) -> Transcript:
    """The history with these sizes."""
    entries = zip(case.reconciled.history, case.reconciled.tips, sizes, strict=True)
    return Transcript(tuple(Entry(message, tokens, tip) for message, tip, tokens in entries))


def compacted(before: Transcript, kept: int, tokens: int) -> Transcript:
    """The first `kept` entries as they are, then one of ours with so many tokens."""
    ours = Entry(make({"role": "user", "content": "a summary"}), tokens, origin="inserted", stage="summarize")
    return Transcript((*before.entries[:kept], ours))


# ---------------------------------------------------------------- prices
def test_a_cached_token_costs_a_part_of_one_that_is_not() -> None:
    assert cost(1000, 600, 0.1) == pytest.approx(460)
    assert cost(1000, 600, 0.0) == 400
    assert cost(1000, 1000, 1.0) == cost(1000, 0, 0.1) == 1000


def test_what_a_summarizer_writes_costs_more_than_what_it_reads() -> None:
    assert summary_cost(1000, 100) == 1400


# ---------------------------------------------------------------- what an earlier request has sent
@pytest.mark.parametrize(
    ("roles", "known", "sent"),
    [
        ("u", 0, 0),
        ("uau", 2, 1),  # the answer is stored, and no request has carried it yet
        ("uau", 3, 3),  # the same request again
        ("uaau", 3, 1),
        ("uatau", 4, 3),
        ("a", 1, 0),
    ],
)
def test_a_request_before_sent_what_is_stored_without_the_answer_at_its_end(roles: str, known: int, sent: int) -> None:
    names = {"u": "user", "a": "assistant", "t": "tool"}
    history = [make({"role": names[role], "content": str(n)}) for n, role in enumerate(roles)]
    assert sent_before(joined(history, known)) == sent


def test_what_two_prompts_share_ends_at_the_first_byte_that_differs() -> None:
    case = Weighed(joined(messages(4), 0), Policy())
    before = prompt(case, [1, 20, 300, 4000])
    assert shared_tokens(before, before) == 4321
    assert shared_tokens(before, compacted(before, 2, 50)) == 21
    assert shared_tokens(before, compacted(before, 0, 50)) == 0
    assert shared_tokens(Transcript(()), before) == 0


def test_the_seen_part_ends_before_the_first_new_message() -> None:
    case = Weighed(joined(messages(5), 4), Policy())
    assert seen_part(prompt(case, [1, 20, 300, 4000, 50_000]), case.reconciled).tokens == 321


# ---------------------------------------------------------------- what is worth it
def weighed(sizes: Sequence[int], *, kept: int, to: int, known: int | None = None, **keys: Any) -> bool:
    """Whether a prompt of these sizes is to be cut to its first `kept` messages and `to` tokens of ours."""
    case = Weighed(joined(messages(len(sizes)), len(sizes) - 1 if known is None else known), Policy(**keys))
    before = prompt(case, sizes)
    return worth_it(case, before, replace(SUMMARIZED, transcript=compacted(before, kept, to)))


AT_TRIGGER, NEARLY_TOO_LONG, TOO_LONG = [300, 300, 185, 5, 15], [400, 300, 240, 5, 15], [500, 300, 200, 5, 15]
"""All but the last 20 tokens were sent before."""


def test_compacting_from_the_trigger_to_the_target_pays_even_if_nothing_of_the_front_is_kept() -> None:
    assert weighed(AT_TRIGGER, kept=0, to=550)


def test_a_change_that_gains_little_for_all_that_it_breaks_waits() -> None:
    assert not weighed(AT_TRIGGER, kept=0, to=700)
    assert weighed(AT_TRIGGER, kept=1, to=330), "with the front kept, less has to be read anew"
    assert not weighed(AT_TRIGGER, kept=3, to=0), "it breaks nothing, and gains too little to touch a text for"


def test_what_was_never_sent_before_breaks_nothing() -> None:
    assert weighed(AT_TRIGGER, kept=0, to=700, known=0)


def test_what_is_nearly_too_long_asks_for_its_gain_only_and_what_is_too_long_for_nothing() -> None:
    assert weighed(NEARLY_TOO_LONG, kept=0, to=880)
    assert not weighed(NEARLY_TOO_LONG, kept=0, to=930)
    assert weighed(TOO_LONG, kept=0, to=1004)


def test_a_long_conversation_is_expected_to_go_on_for_longer_than_a_young_one() -> None:
    young, old, older = 2 * FEWEST_REQUESTS - 1, 2 * MOST_REQUESTS + 1, 6 * MOST_REQUESTS + 1
    sizes = {n: [*([1] * (n - 3)), 800 - n, 5, 15] for n in (young, old, older)}
    assert [weighed(sizes[n], kept=0, to=645) for n in (young, old, older)] == [False, True, True]
    assert [weighed(sizes[n], kept=0, to=720) for n in (old, older)] == [False, False]


def test_where_cached_tokens_cost_nothing_only_what_has_to_is_changed() -> None:
    assert not weighed(AT_TRIGGER, kept=0, to=100, cached_price=0.0)
    assert weighed(NEARLY_TOO_LONG, kept=0, to=100, cached_price=0.0)


@pytest.mark.parametrize("keys", [{"pipeline": ({"stage": "summarize"},)}, {"preset": "agkit"}])
def test_a_pipeline_of_ones_own_and_the_reference_presets_know_the_least_gain_only(keys: dict[str, Any]) -> None:
    assert weighed(AT_TRIGGER, kept=0, to=700, **keys)
    assert not weighed(AT_TRIGGER, kept=3, to=0, **keys)
    assert not is_cold(cold(**keys))


# ---------------------------------------------------------------- when nothing is cached
def cold(history: int = 3, known: int = 2, **keys: Any) -> Weighed:
    return Weighed(joined(messages(history), known), Policy(**keys), idle_s=301)


def test_a_cache_is_cold_when_it_was_not_used_for_longer_than_it_lives() -> None:
    assert is_cold(cold())
    assert not is_cold(replace(cold(), idle_s=300))
    assert not is_cold(cold(cache_ttl_s=3600))


def test_a_request_that_is_sent_again_is_never_cold() -> None:
    assert not is_cold(cold(known=3))


EDITED = Checkpoint("", "", (), 0.0, actions=(("summarize", 1),))
SHORT = replace(EDITED, actions=(("compact_messages", 1), ("compact_tool_results", 2)))
UNKNOWN = replace(EDITED, actions=(("a stage of another version", 1),))
RECALLED = replace(EDITED, actions=((TAKEN_OUT, 1), (STAGE, 2)))


@pytest.mark.parametrize(
    ("checkpoint", "warm_at", "cold_at"),
    [
        (None, 800, 800),
        (replace(EDITED, actions=()), 800, 800),  # all goes out as it came again: no edit to go on from
        (EDITED, 800, 675),
        (UNKNOWN, 800, 675),
        (SHORT, 950, 750),
        (RECALLED, 800, 800),  # what was found again shortens nothing
        (replace(EDITED, actions=(*RECALLED.actions, *EDITED.actions)), 800, 675),
        (replace(SHORT, actions=(*SHORT.actions, *RECALLED.actions)), 950, 750),
    ],
)
def test_an_edited_prompt_is_compacted_sooner_when_nothing_is_cached(checkpoint: Checkpoint | None, warm_at: int, cold_at: int) -> None:
    assert (trigger(replace(cold(), idle_s=0), checkpoint), trigger(cold(), checkpoint)) == (warm_at, cold_at)


def test_below_the_trigger_a_cold_cache_is_no_reason_to_lose_something_for_good() -> None:
    case = cold()
    below, above = prompt(case, [350, 335, 15]), prompt(case, [400, 395, 15])
    for before in (below, above):
        assert worth_it(case, before, replace(SHORTENED, transcript=compacted(before, 0, 600)))
        assert worth_it(case, before, replace(SUMMARIZED, transcript=compacted(before, 0, 600))) is (before is above)
    assert not worth_it(case, below, replace(SHORTENED, transcript=compacted(below, 0, 660)))
    beside = Outcome(compacted(below, 0, 600), (*RECALLED.actions, *SHORTENED.actions))
    assert worth_it(case, below, beside), "taking out what was recalled loses nothing"


# ---------------------------------------------------------------- what becomes of it in a plan
POLICY = Policy(keep_recent_turns=0)


def asked_after(idle_s: float) -> tuple[Situation, Chain, list[Message]]:
    """A session that was compacted, grew to about 77 % since, and asks once more after some time."""
    chain, history, limit = Chain(POLICY), long_turn(20), 12_000
    assert chain.ask(history, limit).plan.actions
    while True:
        longer = [*history, assistant("ok " * 200), *long_turn(1)[1:], user("Go on.")]
        chain.idle_s = idle_s
        situation = chain.situation(longer, limit)
        if plan(replace(situation, idle_s=0.0)).transcript.tokens > limit * 0.76:
            return situation, chain, longer
        chain.idle_s = 0.0
        history = longer
        assert not chain.ask(history, limit).plan.actions


def test_an_edited_session_is_compacted_early_after_a_long_silence_and_only_then() -> None:
    warm, _, _ = asked_after(10)
    assert plan(warm).checkpoint is None
    late, _, _ = asked_after(1000)
    assert plan(late).actions
    assert plan(late).tokens_sent < plan(warm).tokens_sent


def test_a_session_without_an_edit_goes_out_as_it_came_however_long_it_was_silent() -> None:
    history = [*long_turn(20), assistant("done"), user("And now?")]
    chain = Chain(POLICY, idle_s=10_000)
    limit = int(sum(map(count, history)) / 0.79)
    assert not chain.ask(history, limit).plan.changed


def test_a_request_sent_again_much_later_gets_the_plan_that_it_had() -> None:
    warm, chain, history = asked_after(10)
    chain.ask(history, 12_000)
    chain.idle_s = 10_000
    again = chain.ask(history, 12_000)
    assert [message.raw for message in plan(warm).messages] == again.sent


def test_a_gain_that_does_not_pay_waits_until_the_prompt_is_nearly_too_long() -> None:
    twice = "the same line of a log\n" * 60
    history = [user("go"), call("a"), result("a", twice), call("b"), result("b", twice), *talk(30)[1:]]
    acted = {}
    for price, share in ((0.1, 0.83), (1.0, 0.83), (0.1, 0.96)):
        chain = Chain(Policy(keep_recent_turns=99, cached_price=price))
        chain.ask(history[:-2], 100_000)
        acted[price, share] = chain.ask(history, int(sum(map(count, history)) / share)).plan.changed
    assert acted == {(0.1, 0.83): False, (1.0, 0.83): True, (0.1, 0.96): True}
