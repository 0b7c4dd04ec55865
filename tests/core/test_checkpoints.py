"""Frozen decisions and their replay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxproxy.core.applying import apply
from ctxproxy.core.checkpoints import LEFT_TIPS, RESCUE, anchored, freeze, holds_only, is_rescue, is_void, replay, resume, variant_of
from ctxproxy.core.messages import Directives
from ctxproxy.core.pipeline import run
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Checkpoint, FrozenEntry, LeftOut, Summary
from ctxproxy.core.stages.base import make_stage
from ctxproxy.core.transcript import Entry, Fold, Replace, Span, Transcript
from tests.core.histories import assistant, context, count, talk, transcript, user

BASE = transcript([*talk(3)[:-1], user("pinned", Directives(pin=True)), assistant("yes"), user("last question?")], pinned=[6])
TIPS = [entry.tip for entry in BASE.entries]


def checkpoint(
    at: int, created: float = 1.0, *, variant: str = "v", wants: str = "", entries: tuple[FrozenEntry, ...] = (), rescue: bool = False
) -> Checkpoint:
    return Checkpoint(TIPS[at], variant, entries, created, wants, ((RESCUE, 1),) if rescue else ())


def summary(at: int, kind: str = "llm") -> Summary:
    return Summary(TIPS[at], "text", "llm" if kind == "llm" else "extractive", "m", 1, 1, 0.0, 1.0, 2.0)


def decision() -> tuple[Transcript, Checkpoint]:
    """The first turn folded into a message of ours, the next answer cut."""
    edited = assistant("a1 cut")
    done = apply(BASE, [Fold(Span(0, 2), (user("[earlier]"),)), Replace(3, edited)], "trial", count)
    return done, freeze(done, TIPS[3], "v", 5.0, wants="", actions=[("trial", 2)])


def test_a_variant_is_named_by_model_and_preset_or_pipeline() -> None:
    stage = {"stage": "drop_oldest"}
    names = [
        variant_of("m", Policy()),
        variant_of("n", Policy()),
        variant_of("m", Policy(preset="lossless")),
        variant_of("m", Policy(pipeline=())),
        variant_of("m", Policy(pipeline=(stage,))),
        variant_of("m", Policy(pipeline=({**stage, "goal_share": 0.5},))),
        variant_of("\ud83c", Policy()),
    ]
    assert len(set(names)) == len(names)
    assert variant_of("m", Policy(max_tokens=99, keep_recent_turns=1)) == names[0]


def test_a_decision_holds_originals_by_tip_and_texts_of_ours_with_their_bytes() -> None:
    done, made = decision()
    assert (made.tip, made.variant, made.created, made.wants, made.actions) == (TIPS[3], "v", 5.0, "", (("trial", 2),))
    assert made.entries[0] == FrozenEntry("", user("[earlier]").raw, done.entries[0].tokens, "trial", (TIPS[0], TIPS[1]))
    assert made.entries[1] == FrozenEntry(TIPS[2], None, done.entries[1].tokens)
    assert made.entries[2] == FrozenEntry(TIPS[3], assistant("a1 cut").raw, done.entries[2].tokens, "trial")


def test_a_replayed_decision_gives_the_same_entries_and_then_what_came_after() -> None:
    done, made = decision()
    upto = Transcript(BASE.entries[:4])
    cut = apply(upto, [Fold(Span(0, 2), (user("[earlier]"),))], "trial", count)
    frozen = freeze(cut, TIPS[3], "v", 5.0, wants="", actions=())
    assert replay(frozen, upto, count).entries == cut.entries
    assert replay(frozen, BASE, count).entries == (*cut.entries, *BASE.entries[4:])
    assert [e.message.raw for e in replay(made, upto, count).entries[:3]] == [e.message.raw for e in done.entries[:3]]


def test_an_edited_entry_comes_back_as_edited_and_a_pinned_one_as_pinned() -> None:
    frozen = Checkpoint(
        TIPS[6], "v", (FrozenEntry(TIPS[5], b'{"role":"assistant","content":"x"}', 9, "trial"), FrozenEntry(TIPS[6], user("pinned").raw)), 1.0
    )
    edited, pinned, *rest = replay(frozen, BASE, count).entries
    assert (edited.origin, edited.stage, edited.tip, edited.tokens, edited.pinned) == ("edited", "trial", TIPS[5], count(edited.message), False)
    assert (pinned.origin, pinned.pinned) == ("edited", True)
    assert rest == list(BASE.entries[7:])


def test_an_original_that_is_gone_from_the_history_is_left_out_and_an_unknown_tip_replays_nothing() -> None:
    gone = Checkpoint(TIPS[1], "v", (FrozenEntry("ff" * 16), FrozenEntry(TIPS[1]), FrozenEntry("", user("ours").raw)), 1.0)
    assert [e.message.raw for e in replay(gone, BASE, count).entries[:2]] == [BASE.entries[1].message.raw, user("ours").raw]
    assert replay(Checkpoint("ff" * 16, "v", (), 1.0), BASE, count) is BASE
    inserted = Entry(user("gap"), 5, origin="inserted", stage="forget")
    assert replay(Checkpoint(TIPS[1], "v", (), 1.0), Transcript((inserted, *BASE.entries)), count).entries == BASE.entries[2:]


def test_the_deepest_decision_of_the_variant_on_the_chain_is_resumed_the_newest_of_one_depth() -> None:
    found = [checkpoint(1), checkpoint(4), checkpoint(2), checkpoint(4, 9.0), checkpoint(5, variant="other")]
    assert resume(TIPS, found, "v") == found[3]
    assert resume(TIPS[:4], found, "v") == found[2]
    assert resume(TIPS[:1], found, "v") is None


@pytest.mark.parametrize(
    ("wants", "rescue", "summaries", "void"),
    [
        ("", False, [summary(1)], False),
        (TIPS[1], False, [summary(1)], True),
        (TIPS[1], False, [summary(1, "extractive")], False),
        (TIPS[1], False, [summary(0)], False),
        (TIPS[1], True, [summary(1)], False),
    ],
)
def test_a_decision_is_void_as_soon_as_the_summary_that_it_wanted_is_there(wants: str, rescue: bool, summaries: list[Summary], void: bool) -> None:
    made = checkpoint(4, wants=wants, rescue=rescue)
    assert resume(TIPS, [made, checkpoint(0)], "v", summaries) == (checkpoint(0) if void else made)
    assert is_rescue(made) is rescue
    assert is_void(made, {one.tip for one in summaries if one.kind == "llm"}) is void


def test_a_decision_that_holds_a_forgotten_message_or_its_summary_is_not_resumed() -> None:
    shows, covers = FrozenEntry(TIPS[0], b"{}"), FrozenEntry("", b"{}", covers=(TIPS[1],))
    made = checkpoint(4, entries=(shows, covers))
    assert resume(TIPS, [made], "v", forgotten={TIPS[2]}) == made
    assert resume(TIPS, [made], "v", forgotten={TIPS[0]}) is None
    assert resume(TIPS, [made], "v", forgotten={TIPS[1]}) is None


def test_what_real_stages_made_is_replayed_byte_for_byte() -> None:
    done = run(BASE, [make_stage({"stage": "drop_oldest"})], context(BASE.tokens // 2)).transcript
    frozen = freeze(done, TIPS[-1], "v", 1.0, wants="", actions=())
    assert done is not BASE
    assert [(e.message.raw, e.origin, e.covers, e.tokens) for e in replay(frozen, BASE, count).entries] == [
        (e.message.raw, e.origin, e.covers, e.tokens) for e in done.entries
    ]


def test_a_decision_stands_already_at_the_earliest_tip_that_it_needs() -> None:
    done, _ = decision()
    made = freeze(done, TIPS[-1], "v", 5.0, wants="", actions=[("trial", 2)])
    earliest = anchored(made, TIPS)
    assert earliest is not None
    assert (earliest.tip, len(earliest.entries)) == (TIPS[3], 3)
    assert replay(earliest, BASE, count) == replay(made, BASE, count) == done
    assert anchored(earliest, TIPS[:4]) is None


def test_a_client_whose_last_message_changes_finds_the_decision_all_the_same() -> None:
    done, _ = decision()
    made = freeze(done, TIPS[-1], "v", 5.0, wants="", actions=[])
    elsewhere = [*TIPS[:-1], "f" * 32]
    assert resume(elsewhere, [made], "v") is None
    earliest = anchored(made, TIPS)
    assert earliest is not None
    assert resume(elsewhere, [made, earliest], "v") is earliest


@pytest.mark.parametrize("tips", [TIPS, TIPS[:1], []])
def test_a_decision_that_leaves_all_as_it_is_has_no_earlier_tip(tips: list[str]) -> None:
    assert anchored(freeze(BASE, TIPS[-1], "v", 5.0, wants="", actions=[]), tips) is None


def test_a_decision_remembers_the_newest_of_many_that_left_no_trace() -> None:
    tips = [f"{n:032x}" for n in range(LEFT_TIPS + 10)]
    entry = Entry(user("q"), 3, "aa" * 16)
    whole = Transcript(
        (entry,), (LeftOut(tuple(tips[:8]), "clear"), LeftOut(tuple(tips[8:15]), "drop_oldest"), LeftOut(tuple(tips[15:]), "clear", "why"))
    )
    made = freeze(whole, entry.tip, "v", 1.0, wants="", actions=())
    assert made.left == (LeftOut(tuple(tips[10:15]), "drop_oldest"), LeftOut(tuple(tips[15:]), "clear", "why"))
    assert replay(made, Transcript((entry,), (LeftOut((tips[0],), "clear", "why"),)), count).left[1].tips == (*tips[15:], tips[0])


def test_what_a_summary_tells_of_messages_that_stand_nowhere_is_held_too() -> None:
    told = replace(checkpoint(4), left=(LeftOut((TIPS[1],), "summarize"),))
    dropped = replace(checkpoint(4), left=(LeftOut((TIPS[1],), "drop_oldest"), LeftOut((TIPS[1],), "once_there")))
    assert resume(TIPS, [told], "v", forgotten={TIPS[1]}) is None
    assert resume(TIPS, [told], "v", forgotten={TIPS[2]}) == told
    assert resume(TIPS, [dropped], "v", forgotten={TIPS[1]}) == dropped


def test_reasons_come_back_with_the_decision() -> None:
    done = apply(BASE, [Fold(Span(0, 2), (), "too old"), Replace(3, assistant("a1 cut"), "long")], "trial", count)
    frozen = freeze(done, TIPS[-1], "v", 5.0, wants="", actions=())
    assert replay(frozen, BASE, count) == done
    assert (done.left[0].reason, done.entries[1].reason) == ("too old", "long")


def test_a_decision_may_be_that_one_thing_was_done_and_nothing_else() -> None:
    done = [((), False), ((("a", 1),), True), ((("a", 1), ("a", 2)), True), ((("a", 1), ("b", 1)), False)]
    assert [(actions, holds_only(replace(checkpoint(4), actions=actions), "a")) for actions, _ in done] == done
