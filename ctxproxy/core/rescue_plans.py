"""What to send after an overflow: the plans of the ladder's rungs. Each is frozen as a rescue, which stands until the next compaction."""

from __future__ import annotations

from dataclasses import replace

from ctxproxy.core.budget import Budget
from ctxproxy.core.checkpoints import RESCUE
from ctxproxy.core.kept_texts import LAST_SHARE, rules_room, with_kept
from ctxproxy.core.language import language_of
from ctxproxy.core.markers import topic_of_text
from ctxproxy.core.pins import missing_pins, pins_tokens, with_pins
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.plan import decided, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Recovery
from ctxproxy.core.rewrites import fitted
from ctxproxy.core.situation import Situation, base_transcript, context_of
from ctxproxy.core.stages.aggressive_trim import AggressiveTrim
from ctxproxy.core.stages.base import Stage
from ctxproxy.core.stages.clear import Clear
from ctxproxy.core.stages.drop_oldest import DropOldest
from ctxproxy.core.stages.shrink_newest import ShrinkNewest
from ctxproxy.core.stages.summarize import Summarize

MARKS = ((RESCUE, 1),)
LAST_RUNG = "the last user message alone is too long, and recovery.shorten_last_user is set"


def replanned(s: Situation, budget: Budget) -> Plan:
    """The plan under a tighter budget."""
    made = plan(replace(s, budget=budget))
    if made.checkpoint is None or not made.actions:
        return made
    actions = (*MARKS, *made.actions)
    return replace(made, actions=actions, checkpoint=replace(made.checkpoint, actions=actions))


def trimmed(s: Situation, budget: Budget, recovery: Recovery) -> Plan:
    """Everything before the last user message summarized, then the aggressive trim (000-22, 000-23)."""
    tight = replace(s, budget=budget)
    base = base_transcript(tight)
    context = replace(context_of(tight, base), keep_recent_turns=0)
    stages: list[Stage] = [
        Summarize(),
        AggressiveTrim(max_tool_chars=recovery.tool_result_chars, max_user_chars=recovery.user_text_chars, max_turns=recovery.max_turns),
        DropOldest(),
        ShrinkNewest(),
    ]
    room = rules_room(s.policy, budget.limit)
    return decided(tight, base, with_kept(base, context, room, lambda transcript, held: run(transcript, stages, held)), MARKS)


def cleared(s: Situation) -> Plan:
    """System, pins and the last user message (000-25); the log keeps everything."""
    base = base_transcript(s)
    context = replace(context_of(s, base), target=0)
    room = rules_room(s.policy, s.budget.limit, LAST_SHARE)
    return decided(s, base, with_kept(base, context, room, lambda transcript, held: run(transcript, [Clear()], held)), MARKS)


def shortened(s: Situation, budget: Budget) -> Plan:
    """As `cleared`, and the last user message cut to the budget: the one case where it is changed, and only if configured."""
    clear = cleared(s)
    base, at = clear.transcript, clear.transcript.last_user
    if at < 0 or base.entries[at].pinned or base.tokens <= budget.limit:
        return clear
    entry, language = base.entries[at], language_of([base.entries[at].message])
    lost = missing_pins([other.message for other in base.entries if other is not entry], s.pins)
    room = max(entry.tokens - (base.tokens - budget.limit) - pins_tokens(lost, s.count, language), 1)
    message = fitted(entry, topic_of_text(entry.message, language), room, s.count, language)
    cut = entry._replace(message=message, tokens=s.count(message), origin="edited", stage="shorten_last_user", reason=LAST_RUNG)
    done = with_pins(base.with_entries((*base.entries[:at], cut, *base.entries[at + 1 :])), s.pins, s.count, language)
    if done.tokens >= base.tokens:
        return clear
    outcome = Outcome(done, ((cut.stage, 1),), ((cut.stage, base.tokens - done.tokens),))
    return decided(replace(s, budget=budget), base_transcript(s), outcome, MARKS)
