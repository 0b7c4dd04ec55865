"""What is found again of the past, in a prompt: one framed message at its end, just before the user's, with a short acknowledgement.

It is no part of the history: it is frozen with the decision that put it in, sent again byte for byte, and gone with the next compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ctxproxy.core.checkpoints import freeze, resume
from ctxproxy.core.frames import said
from ctxproxy.core.language import Language
from ctxproxy.core.pairing import acknowledgement, in_turn
from ctxproxy.core.planned import Plan, array
from ctxproxy.core.recall_titles import STAGE, TITLES, is_recalled
from ctxproxy.core.records import Checkpoint
from ctxproxy.core.situation import Situation, gone_tips
from ctxproxy.core.text_index import Place
from ctxproxy.core.transcript import Entry, Transcript

ROLES: dict[Language, dict[str, str]] = {
    "en": {"user": "User: ", "assistant": "Assistant: ", "tool": "Tool: ", "function": "Tool: ", "summary": "Summary: ", "note": "Note: "},
    "zh": {"user": "用户：", "assistant": "助手：", "tool": "工具：", "function": "工具：", "summary": "摘要：", "note": "笔记："},
}
TODAY: dict[Language, str] = {"en": "today", "zh": "今天"}


class Passage(NamedTuple):
    """A piece of the past: where it is, who said it, what, and the day where it was another one than today."""

    place: Place
    role: str
    text: str
    day: str = ""


def recalled_text(passages: Sequence[Passage], language: Language) -> str:
    """Title and passages, a line each, the day before those of another one."""
    lines: list[str] = [TITLES[language]]
    day = ""
    for passage in passages:
        if passage.day != day:
            day = passage.day
            lines.append(f"[{day or TODAY[language]}]")
        lines.append(ROLES[language].get(passage.role, "") + passage.text)
    return "\n".join(lines)


def with_recalled(s: Situation, planned: Plan, passages: Sequence[Passage], language: Language) -> Plan:
    """The plan with these passages before the last user message, frozen at this request's tip; the same plan where there are none or the
    prompt would be too long with them.
    """
    entries, at = planned.transcript.entries, planned.transcript.last_user
    if not passages or at != len(entries) - 1 or any(map(is_recalled, entries[max(at - 2, 0) : at])):
        return planned
    pair = (said("user", recalled_text(passages, language)), acknowledgement(language))
    reason = f"{len(passages)} passages that the last user message asks for"
    added = tuple(Entry(m, s.count(m), origin="inserted", stage=STAGE, reason=reason) for m in pair)
    wider = planned.transcript.with_entries((*entries[:at], *added, *entries[at:]))
    done = in_turn(planned.transcript, wider, STAGE, s.count, language)
    if done.tokens > s.budget.with_recalled:
        return planned
    action = (STAGE, len(passages))
    return replace(
        planned,
        transcript=done,
        messages=array(s, done, changed=True),
        changed=True,
        tokens_sent=planned.tokens_sent + done.tokens - planned.transcript.tokens,
        actions=(*planned.actions, action),
        saved=(*planned.saved, (STAGE, 0)) if planned.saved else (),
        recalled=_frozen(s, planned, done, action),
    )


def _frozen(s: Situation, planned: Plan, done: Transcript, action: tuple[str, int]) -> Checkpoint:
    """The decision that all goes on from: what was decided before stands, with the passages."""
    before = planned.checkpoint or resume(s.reconciled.tips, s.checkpoints, s.variant, forgotten=gone_tips(s))
    earlier = [one for one in before.actions if one[0] != STAGE] if before else []
    return freeze(done, s.reconciled.tip, s.variant, s.now, wants=before.wants if before else "", actions=(*earlier, action))
