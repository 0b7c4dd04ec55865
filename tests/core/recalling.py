"""Requests that get back what their prompt holds no more, as the proxy has them: planned, searched, and kept as `settle` would keep them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctxproxy.core.chunks import chunks_of
from ctxproxy.core.effects import PutCheckpoint
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Message
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.recalled import with_recalled
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retrieval import Bounds, choose, query_of
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.settle import Ending, settle
from ctxproxy.core.situation import Situation
from ctxproxy.core.text_index import Postings, TextIndex
from tests.core.chains import Chain, Step, stored
from tests.core.histories import FILLER, assistant, user

KEY = SessionKey("ab" * 16, "talk")
BOUNDS = Bounds(8, 1500, 0.0)
DROPPING = Policy(pipeline=({"stage": "drop_oldest"},))
"""What is old goes, and nothing stands for it."""


def postings(s: Situation, terms: Sequence[str]) -> Postings:
    """Where terms stand in a history, as an index of all but the last message says."""
    index = TextIndex()
    for message, tip in zip(s.reconciled.history[:-1], s.reconciled.tips[:-1], strict=True):
        for chunk in chunks_of(message, tip):
            index.add((tip, chunk.part), terms_of(chunk.text))
    return index.postings(terms)


def recalling(s: Situation, bounds: Bounds = BOUNDS, planner: Callable[[Situation], Plan] = plan) -> Plan:
    """The plan with what was found for the last user message."""
    planned, query = planner(s), query_of(s.reconciled.history)
    passages = choose(s, planned.transcript, query, postings(s, list(query.terms)), bounds)
    return with_recalled(s, planned, passages, language_of([s.reconciled.history[-1]]))


def ask(chain: Chain, history: Sequence[Message], limit: int) -> Step:
    """A request whose decisions are kept where `settle` puts them."""
    step = chain.ask(history, limit, decide=recalling)
    ending = Ending(KEY, None, "full", "", "m", "p", 50, (assistant("the answer"),), complete=True, now=9.0)
    for effect in settle(step.situation, step.plan, ending):
        if isinstance(effect, PutCheckpoint):
            made = effect.checkpoint
            chain.checkpoints[made.tip, made.variant] = stored(made, as_json=len(chain.steps) % 2 == 0)
    return step


def long_ago(*said: str, question: str, turns: int = 12) -> list[Message]:
    """Things said near the beginning of a long conversation, each with an answer, and a question at its end."""
    told = [message for text in said for message in (user(text), assistant("All right."))]
    filler = [message for n in range(turns) for message in (user(f"q{n} " + FILLER * 3), assistant(f"a{n} " + FILLER * 3))]
    return [user("Let us talk."), assistant("About what?"), *told, *filler, user(question)]
