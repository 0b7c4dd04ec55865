"""A client's requests one after another against the core, with what a store would keep between them, and strategies for such chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

import msgspec
from hypothesis import strategies as st

import ctxproxy.core.stages  # noqa: F401  it fills the registry
from ctxproxy.core.budget import budget
from ctxproxy.core.checkpoints import variant_of
from ctxproxy.core.foresight import foresee, is_due_soon
from ctxproxy.core.messages import ROOT, Directives, Message, Tip, chain, identity, leading_system, make, read, text_of
from ctxproxy.core.plan import background_tip, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.records import Checkpoint, Foreseen, Summary
from ctxproxy.core.sessions import join_full
from ctxproxy.core.situation import Situation
from ctxproxy.core.stages.base import REGISTRY
from tests.core.histories import FILLER, count, count_text, histories, turns

Decide: TypeAlias = Callable[[Situation], Plan]
Ahead: TypeAlias = Callable[[Situation], Foreseen | None]
FIXED_TOKENS = 50
"""Tools and response format of every request."""


def stored(checkpoint: Checkpoint, *, as_json: bool) -> Checkpoint:
    """A checkpoint as it comes back from a store."""
    if as_json:
        return msgspec.json.decode(msgspec.json.encode(checkpoint), type=Checkpoint)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(checkpoint), type=Checkpoint)


@dataclass(frozen=True)
class Step:
    """A request, and what was planned for it."""

    situation: Situation
    plan: Plan

    @property
    def asked(self) -> list[Message]:
        """The array as the client means it."""
        return [*self.situation.leading, *self.situation.reconciled.history]

    @property
    def sent(self) -> list[bytes]:
        return [message.raw for message in self.plan.messages]


@dataclass
class Chain:
    """One session: what was decided and summarized so far comes back with each request, summaries some requests late."""

    policy: Policy
    leading: Sequence[Message] = ()
    late: int = 1
    summary_text: str = "They spoke about the task."
    pins: Sequence[str] = ()
    idle_s: float = 0.0
    checkpoints: dict[tuple[Tip, str], Checkpoint] = field(default_factory=dict)
    summaries: dict[Tip, Summary] = field(default_factory=dict)
    forgotten: frozenset[Tip] = frozenset()
    steps: list[Step] = field(default_factory=list)
    known: set[Tip] = field(default_factory=set)
    due: list[tuple[int, Tip]] = field(default_factory=list)
    ahead: Ahead | None = None
    """Works out compactions between the requests; None: nobody does."""
    foreseen: Foreseen | None = None

    def __post_init__(self) -> None:
        self._count = cache(count)
        self._identity = cache(identity)

    def situation(self, history: Sequence[Message], limit: int, model: str = "m") -> Situation:
        """The request for a history that is to have at most `limit` tokens."""
        tips = chain(ROOT, map(self._identity, history))
        fixed = FIXED_TOKENS + sum(map(count, self.leading))
        policy = msgspec.structs.replace(self.policy, max_tokens=fixed + limit)
        known = next((n for n, tip in enumerate(tips) if tip not in self.known), len(tips))
        return Situation(
            leading=tuple(self.leading),
            reconciled=join_full(history, tips, known),
            counts=tuple(map(self._count, history)),
            budget=budget(policy, 10_000_000, None, fixed),
            policy=policy,
            variant=variant_of(model, policy),
            count=self._count,
            count_text=count_text,
            now=float(len(self.steps)),
            since=0.0,
            checkpoints=list(self.checkpoints.values()),
            summaries=list(self.summaries.values()),
            pins=self.pins,
            forgotten=self.forgotten,
            summary_max_tokens=200,
            idle_s=self.idle_s,
            foreseen=self.foreseen,
        )

    def ask(self, history: Sequence[Message], limit: int, model: str = "m", decide: Decide = plan) -> Step:
        """Plan a request, keep what was decided, and begin the summaries that it asks for."""
        self._deliver()
        situation = self.situation(history, limit, model)
        step = Step(situation, decide(situation))
        self.steps.append(step)
        self.known.update(situation.reconciled.tips)
        made = step.plan.checkpoint
        if made is not None:
            self.checkpoints[made.tip, made.variant] = stored(made, as_json=len(self.steps) % 2 == 0)
        if self.ahead and is_due_soon(situation, step.plan):
            self.foreseen = self.ahead(situation)
        wanted = {step.plan.wants, background_tip(situation, step.plan)} - {""}
        self.due += [(len(self.steps) + self.late, tip) for tip in sorted(wanted)]
        return step

    def forget(self, tip: Tip) -> None:
        """Never send a message again; what was decided of histories that it is part of goes, as in a store."""
        self.forgotten |= {tip}
        self.foreseen = None
        chains = [step.situation.reconciled.tips for step in self.steps]
        after = {later for tips in chains if tip in tips for later in tips[tips.index(tip) :]}
        self.checkpoints = {at: one for at, one in self.checkpoints.items() if at[0] not in after}
        self.summaries = {at: one for at, one in self.summaries.items() if at not in after}
        self.due = [one for one in self.due if one[1] not in after]

    def _deliver(self) -> None:
        for when, tip in self.due:
            if when <= len(self.steps) and tip not in self.summaries:
                text = f"Summary up to {tip}. {self.summary_text}"
                self.summaries[tip] = Summary(tip, text, "llm", "writer", 1, count_text(text), 0.0, 1.0, 2.0)
                last = self.steps[-1]
                as_it_was = last.situation.forgotten == self.forgotten  # as the desk asks of the store
                if self.ahead and as_it_was and any(decided.wants == tip for decided in self.checkpoints.values()):
                    self.foreseen = self.ahead(replace(last.situation, summaries=list(self.summaries.values())))


def request_ends(history: Sequence[Message]) -> list[int]:
    """Where a client asks: behind a user message or the last result of an exchange, and at the end."""
    ends = [n for n in range(1, len(history)) if history[n - 1].role in ("user", "tool") and history[n].role == "assistant"]
    return [*ends, len(history)]


# ---------------------------------------------------------------- strategies
systems = st.sampled_from(["system", "developer"]).map(lambda role: make({"role": role, "content": "Answer in short. It is 12:00."}))
leadings = st.lists(systems, max_size=2)
shares = st.sampled_from([0.02, 0.1, 0.25, 0.5, 0.8, 0.9, 1.0, 1.3])
summary_texts = st.sampled_from(["They spoke about the task.", "用户在修复错误。", "", "- a point of weight\n" * 20, FILLER * 200])


def _policies() -> st.SearchStrategy[Policy]:
    presets = [Policy(preset=name) for name in PRESETS]
    single = [Policy(pipeline=({"stage": name},)) for name in sorted(REGISTRY)]
    every = Policy(pipeline=tuple({"stage": name} for name in sorted(REGISTRY)))
    bare = st.sampled_from([*presets, *single, every, Policy(), Policy(), Policy()])
    options: list[dict[str, Any]] = [{}, {}, {"keep_recent_turns": 0}, {"max_turns": 3}, {"min_gain": 0.0}, {"compact_at": 0.5, "summarize_at": 0.5}]
    return st.builds(lambda policy, more: msgspec.structs.replace(policy, **more), bare, st.sampled_from(options))


policies = _policies()
adaptive_policies = policies.filter(lambda policy: policy.preset == "adaptive" and policy.pipeline is None)


@dataclass(frozen=True, repr=False)
class Story:
    """A conversation as it will have been at its end, and how it is asked for."""

    history: list[Message]
    chain: Chain
    limit: int
    ends: list[int]

    def __repr__(self) -> str:
        messages = "; ".join(f"{m.role} {len(m.raw)} {m.raw[:100]!r}" for m in self.history)
        return f"Story(limit={self.limit}, ends={self.ends}, {self.chain!r}, history=[{messages}])"[:6000]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def tell(self) -> list[Step]:
        """All its requests, oldest first."""
        return [self.chain.ask(self.history[:end], self.limit) for end in self.ends]


@st.composite
def pinned_histories(draw: st.DrawFn) -> list[Message]:
    """A history in which the client pinned up to two messages; two conversations in a row now and then."""
    messages = [_lighter(m) for m in draw(histories()) + (draw(histories()) if draw(st.booleans()) else [])]
    messages = messages[leading_system(messages) :]
    for at in draw(st.lists(st.integers(0, len(messages) - 1), max_size=2)) if draw(st.booleans()) else []:
        messages[at] = messages[at].with_directives(Directives(pin=True))
    return messages


def _lighter(message: Message) -> Message:
    """The message with its hugest text cut: a chain is planned many times."""
    row = b"row 17 | ok | 2024-01-01\\n"
    return read(message.raw.replace(row * 1000, row * 200), message.directives) if len(message.raw) > 20_000 else message


@st.composite
def stories(draw: st.DrawFn, policy: st.SearchStrategy[Policy] = policies) -> Story:
    history = draw(pinned_histories())
    limit = max(int(sum(map(count, history)) * draw(shares)), 1)
    texts = [line for m in history if m.role == "user" for line in text_of(m).splitlines() if line.strip()]
    pins = draw(st.lists(st.sampled_from(texts).map(lambda text: text[:60].strip()), max_size=2)) if texts else []
    started = Chain(draw(policy), draw(leadings), draw(st.integers(0, 3)), draw(summary_texts), [pin for pin in pins if pin])
    started.idle_s = draw(st.sampled_from([0.0, 0.0, 1e6]))
    started.ahead = (lambda s: foresee(s, plan)) if draw(st.booleans()) else None
    return Story(history, started, limit, request_ends(history)[-5:])


@st.composite
def forks(draw: st.DrawFn, history: Sequence[Message]) -> list[Message]:
    """Another history that begins like this one."""
    at = draw(st.sampled_from(request_ends(history)))
    other = make({"role": "user", "content": "What was asked here instead: " + FILLER * draw(st.sampled_from([0, 3, 40]))})
    return [*history[: at - (history[at - 1].role == "user")], other, *draw(turns())]
