"""003-30: each of the three faults is found, and a sound session has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxproxy.core.doctor import Finding, examined
from ctxproxy.core.messages import Message
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Session, SessionKey, StoredMessage
from ctxproxy.core.sessions import to_store
from ctxproxy.core.situation import Situation
from tests.core.chains import Chain
from tests.core.histories import count, talk

DROPPING = Policy(pipeline=({"stage": "drop_oldest"},), min_gain=0.0)


def situation(history: Sequence[Message], share: float = 2.0, policy: Policy | None = None) -> Situation:
    return Chain(policy or Policy()).situation(history, max(int(sum(map(count, history)) * share), 100))


def findings(s: Situation, *, trouble: str = "", rows: Sequence[StoredMessage] | None = None, **session: object) -> tuple[Finding, ...]:
    log = to_store(s.reconciled, s.counts, 1.0) if rows is None else rows
    kept = Session(SessionKey("0f" * 16, "s"), tip=s.reconciled.tip, messages=len(s.reconciled.history), requests=20)
    return examined(s, plan(s), replace(kept, **session), log, frozenset(s.reconciled.tips[:3]), trouble)  # type: ignore[arg-type]


def faults(found: Sequence[Finding]) -> list[str]:
    return [finding.why for finding in found if not finding.ok]


def test_a_sound_session_has_no_fault_and_each_question_its_answer() -> None:
    found = findings(situation(talk(5)))
    assert faults(found) == []
    assert [finding.question.split()[0] for finding in found] == ["Is", "Can", "Does"]
    assert found[0].why.startswith("11 of 11 messages are sent")
    assert found[1].why == "11 messages from the beginning on; 3 have pieces in the search index"
    assert faults(findings(situation(talk(60), 0.8))) == []


def test_an_empty_window_is_found() -> None:
    assert "stands before the first" in faults(findings(situation([]), messages=4))[0]
    s = situation(talk(5))
    gone = replace(s, cleared=frozenset(s.reconciled.tips))
    assert faults(findings(gone)) == ["none of 11 messages is sent: they were cleared, forgotten or compacted away"]
    assert faults(findings(situation([]))) == []


def test_a_log_that_is_not_whole_or_cannot_be_written_is_found() -> None:
    s = situation(talk(5))
    assert "the disk is full" in faults(findings(s, trouble="the disk is full"))[0]
    log = to_store(s.reconciled, s.counts, 1.0)
    assert "does not reach back" in faults(findings(s, rows=log[2:]))[0]
    assert "does not reach back" in faults(findings(s, rows=[]))[0]
    erased = findings(s, rows=[replace(log[0], raw=b""), *log[1:]])
    assert erased[1].ok and "1 of them erased" in erased[1].why


def test_an_eviction_that_is_too_hard_is_found() -> None:
    assert "have nothing that stands for them" in faults(findings(situation(talk(60), 0.5, DROPPING)))[0]
    low = Policy(pipeline=({"stage": "summarize", "fill": False},), target=0.05, keep_recent_turns=0)
    assert "context.target is low" in faults(findings(situation(talk(60), 0.8, low)))[0]
    assert "9 of 20 requests compacted" in faults(findings(situation(talk(5)), compactions=9))[0]


def test_what_somebody_wanted_out_is_no_fault_of_compaction() -> None:
    s = situation(talk(5))
    for wanted in ({"cleared": frozenset(s.reconciled.tips[:6])}, {"forgotten": frozenset(s.reconciled.tips[:6])}):
        assert faults(findings(replace(s, **wanted))) == []  # type: ignore[arg-type]
