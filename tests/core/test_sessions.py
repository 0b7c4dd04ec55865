"""Which conversation a request belongs to, and how it joins what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from ctxproxy.core.messages import ROOT, Message, chain, identity, make
from ctxproxy.core.records import Session, SessionKey
from ctxproxy.core.sessions import (
    Joined,
    Reconciled,
    answers_open_calls,
    derived_name,
    frame_of,
    join_full,
    join_thin,
    manner_seen,
    may_be_thin,
    moves_tip,
    rebased,
    tenant_of,
    to_store,
)
from tests.core.histories import assistant, call, count, result, user

SECRET = b"k" * 32
KEY = SessionKey("ab" * 16, "talk")
FRAME = frame_of("m", stream=True, tools=None)
STORED = [user("first"), assistant("one"), user("second"), assistant("two")]


def tips(messages: list[Message]) -> list[str]:
    return chain(ROOT, map(identity, messages))


TIPS = tips(STORED)


def session(**fields: Any) -> Session:
    return Session(KEY, **{"tip": TIPS[-1], "frame": FRAME, **fields})


def test_a_tenant_is_named_by_credential_and_origin_and_nobody_can_guess_it_without_the_secret() -> None:
    one = tenant_of(SECRET, "sk-1", "https://a.invalid")
    assert len(one) == 32
    assert int(one, 16) >= 0
    others = [
        tenant_of(SECRET, "sk-2", "https://a.invalid"),
        tenant_of(SECRET, "sk-1", "https://b.invalid"),
        tenant_of(b"other", "sk-1", "https://a.invalid"),
        tenant_of(SECRET, "", "https://a.invalid"),
        tenant_of(SECRET, "sk-1", "https://a.invalid", shared=True),
    ]
    assert len({one, *others}) == 6
    assert tenant_of(SECRET, "sk-1", "https://a.invalid") == one


def test_a_shared_tenant_is_one_for_all_credentials_of_an_origin_and_no_credential_reaches_it_otherwise() -> None:
    shared = tenant_of(SECRET, "sk-1", "https://a.invalid", shared=True)
    assert shared == tenant_of(SECRET, "sk-2", "https://a.invalid", shared=True)
    assert shared != tenant_of(SECRET, "shared", "https://a.invalid")
    assert shared != tenant_of(SECRET, "sk-1", "https://b.invalid", shared=True)


def test_a_derived_name_is_a_digest_of_the_first_user_message() -> None:
    name = derived_name([make({"role": "system", "content": "12:00"}), user("hello"), assistant("hi")])
    assert name == derived_name([make({"role": "system", "content": "12:01"}), user("hello")])
    assert name == derived_name([user([{"type": "text", "text": "hello"}])])
    assert name != derived_name([user("hello!")])
    assert name is not None
    assert name.startswith("auto-")
    assert derived_name([assistant("hi")]) is None


def test_a_frame_tells_model_stream_and_tools_apart() -> None:
    frames = [
        frame_of("m", stream=True, tools=None),
        frame_of("n", stream=True, tools=None),
        frame_of("m", stream=False, tools=None),
        frame_of("m", stream=True, tools=b"[1]"),
        frame_of("m", stream=True, tools=b"[2]"),
        frame_of("\ud83c", stream=True, tools=None),
    ]
    assert len(set(frames)) == len(frames)
    assert frame_of("m", stream=True, tools=b"") == frames[0]


MAY_BE_THIN = [
    (session(), [user("next")], {}, True, "all holds"),
    (session(), [user("next")], {"mode": "full"}, False, "the client says full"),
    (None, [assistant("x")], {"mode": "append", "named": False}, True, "the client says append"),
    (None, [user("next")], {}, False, "the session is not known"),
    (session(), [user("next")], {"named": False}, False, "the name is derived"),
    (session(manner="full"), [user("next")], {}, False, "it was seen to send full history"),
    (session(), [], {}, False, "nothing new"),
    (session(), [user("a"), assistant("b"), user("c")], {}, False, "an assistant message is in it"),
    (session(), [result("c", "x")], {}, True, "results alone"),
    (session(tip=ROOT), [user("next")], {}, False, "the session has no tip yet"),
    (session(frame="other"), [user("next")], {}, False, "it asks in another frame"),
    (session(), [user("next")], {"same_system": False}, False, "it brings another system message"),
    (session(manner="thin", frame="other"), [user("next")], {"same_system": False}, True, "once thin, always thin"),
]


@pytest.mark.parametrize(("known", "messages", "more", "expected", "why"), MAY_BE_THIN, ids=[row[-1] for row in MAY_BE_THIN])
def test_a_thin_request_is_inferred_only_where_all_signs_hold(
    known: Session | None, messages: list[Message], more: dict[str, Any], expected: bool, why: str
) -> None:
    told = {"mode": "auto", "named": True, "frame": FRAME, "same_system": True, **more}
    assert may_be_thin(known, messages, **told) is expected, why


@pytest.mark.parametrize(
    ("messages", "stored", "expected"),
    [
        ([user("next")], STORED, True),
        ([result("c", "x"), user("next")], [*STORED, call("c")], True),
        ([result("d", "x")], [*STORED, call("c")], False),
        ([result("c", "x")], STORED, False),
        ([result("c", "x")], [], False),
        ([user("next"), result("d", "x")], STORED, True),
    ],
)
def test_leading_results_have_to_answer_the_stored_open_calls(messages: list[Message], stored: list[Message], expected: bool) -> None:
    assert answers_open_calls(messages, stored) is expected


@pytest.mark.parametrize(("known", "joined"), [(0, Joined.NEW), (2, Joined.FORKS), (4, Joined.EXTENDS)])
def test_a_full_history_is_new_forks_or_extends_what_is_stored(known: int, joined: Joined) -> None:
    reconciled = join_full(STORED, TIPS, known)
    assert reconciled == Reconciled(joined, tuple(STORED), tuple(TIPS), known)
    assert reconciled.tip == TIPS[-1]


def test_an_empty_history_stands_at_the_root() -> None:
    assert join_full([], [], 0).tip == ROOT


def test_a_thin_request_is_put_behind_what_is_stored() -> None:
    joined = join_thin([user("third")], STORED, TIPS, retried=False)
    whole = [*STORED, user("third")]
    assert joined == Reconciled(Joined.THIN, tuple(whole), tuple(tips(whole)), 4)
    assert join_thin([user("first")], [], [], retried=False).tips == tuple(TIPS[:1])
    assert join_thin([], STORED, TIPS, retried=False).tips == tuple(TIPS)


def test_a_thin_request_that_repeats_the_unanswered_end_is_the_same_request_again() -> None:
    joined = join_thin([user("second")], STORED[:3], TIPS[:3], retried=False)
    assert (joined.tips, joined.fresh_from) == (tuple(TIPS[:3]), 3)
    again = join_thin([user("second")], STORED, TIPS, retried=False)
    assert len(again.history) == 5, "an answered question may be asked once more"


def test_a_thin_request_sent_again_sets_the_answer_aside() -> None:
    joined = join_thin([user("second")], STORED, TIPS, retried=True)
    assert (joined.tips, joined.fresh_from) == (tuple(TIPS[:3]), 3)
    other = join_thin([user("third")], STORED, TIPS, retried=True)
    assert other.fresh_from == 4
    unanswered = join_thin([user("second")], STORED[:3], TIPS[:3], retried=True)
    assert unanswered.tips == tuple(TIPS[:3])
    longer = join_thin([user(str(n)) for n in range(9)], STORED, TIPS, retried=True)
    assert len(longer.history) == 13


def test_a_thin_request_is_put_behind_what_another_has_written_meanwhile() -> None:
    mine = join_thin([user("mine")], STORED[:2], TIPS[:2], retried=False)
    whole = [*STORED, user("mine")]
    assert rebased(mine, STORED, TIPS) == Reconciled(Joined.THIN, tuple(whole), tuple(tips(whole)), 4)
    assert rebased(mine, [], []).tips == tuple(tips([user("mine")]))


def test_a_manner_is_seen_from_an_assistant_message_or_from_a_thin_request() -> None:
    assert manner_seen(join_thin([user("x")], STORED, TIPS, retried=False), [user("x")]) == "thin"
    assert manner_seen(join_full(STORED, TIPS, 0), STORED) == "full"
    assert manner_seen(join_full(STORED[:1], TIPS[:1], 0), STORED[:1]) == "unknown"


SIDE = frame_of("m", stream=False, tools=None)
MOVES = [
    (None, 0, SIDE, True, "the first request"),
    (session(tip=ROOT), 0, SIDE, True, "nothing stands yet"),
    (session(), 2, SIDE, True, "it goes on from what is stored"),
    (session(), 0, FRAME, True, "another beginning in the session's own frame"),
    (session(frame=""), 0, SIDE, True, "a session without a frame"),
    (session(), 0, SIDE, False, "a side request"),
    (session(frame=SIDE), 0, FRAME, True, "the chat itself, after a side request came first"),
]


@pytest.mark.parametrize(("known", "fresh_from", "frame", "expected", "why"), MOVES, ids=[row[-1] for row in MOVES])
def test_a_session_stands_at_the_end_of_its_own_requests_only(known: Session | None, fresh_from: int, frame: str, expected: bool, why: str) -> None:
    assert moves_tip(known, join_full(STORED, TIPS, fresh_from), frame) is expected, why


def test_only_what_the_store_does_not_hold_is_stored_each_with_its_parent() -> None:
    counts = [count(m) for m in STORED]
    rows = to_store(join_full(STORED, TIPS, 0), counts, 7.0)
    assert [(row.parent, row.tip) for row in rows] == list(zip([ROOT, *TIPS], TIPS, strict=False))
    assert [(row.raw, row.role, row.tokens, row.created, row.partial) for row in rows] == [
        (m.raw, m.role, tokens, 7.0, False) for m, tokens in zip(STORED, counts, strict=True)
    ]
    assert to_store(join_full(STORED, TIPS, 3), counts, 7.0) == rows[3:]
    assert to_store(join_full(STORED, TIPS, 4), counts, 7.0) == ()
