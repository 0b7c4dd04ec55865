"""Which sentences tell a decision or a conclusion, said by either side, and lines of the form `[entity|entity][action][goal]` (003-07)."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxproxy.core.rule_words import any_of, words
from ctxproxy.core.rules import CODE, LOG, prose
from ctxproxy.core.sentences import split

DECISION_CHARS = 400
"""A longer sentence tells more than one thing."""
DECIDED = words(
    r"\b(?:we|i)(?:['’]ve| have| had)? (?:now |finally |also )?(?:decided|agreed|chosen|settled|opted|concluded)\b|\b(?:we|i) chose\b"
    r"|\b(?:we|i)(?:['’]ll| will|['’]re going to) (?:go|stick) with\b|\blet['’]s (?:go|stick) with\b|\bit (?:was|is|has been) (?:decided|agreed)\b"
    r"|^\W{0,3}(?:final )?(?:decision|conclusion|decided|agreed|verdict)s?\W{0,3}:\s?\S"
    r"|\b(?:was|were|is|are|has been) (?:rejected|approved) (?:by|because|for)\b",
    "decided|agreed|chosen|settled|opted|concluded|chose|with|decision|conclusion|verdict|rejected|approved",
)
DECIDED_ZH = words(
    "(?:我们|我|大家|最终|最后|已经?|一致)(?:最终|已经?|一致)?(?:决定|商定|敲定|选定|定下)(?!不了|权|性|于|因素)|^(?:最终)?(?:决定|结论)(?:是)?[:：]|那?就(?:用|选|定)(?=[^。，]{1,30}(?:了|吧))"
    "|(?:最终|最后)(?:选择|采用|确定)|结论是|定下来",
    "决定|商定|敲定|选定|定下|结论|就用|就选|就定|选择|采用|确定",
)
TRIPLE = re.compile(r"^\W{0,4}?\[([^\[\]\n]{1,120})\]\s?\[([^\[\]\n|]{1,80})\]\s?\[([^\[\]\n|]{1,200})\]\W{0,2}$", re.MULTILINE)
MOST_ENTITIES = 6


class Triple(NamedTuple):
    """Who or what, what was done, what for."""

    entities: tuple[str, ...]
    action: str
    goal: str


def decisions(text: str) -> list[str]:
    """The sentences that tell what was decided, word for word, in order; no questions, no code, no logs."""
    low = text.lower()
    cues = [cue for cue in (*DECIDED.cues, *DECIDED_ZH.cues) if cue in low]
    found = [
        s for line in (prose(text) if cues else ()) if not LOG.match(line.lower()) for s in split(line, DECISION_CHARS) if any_of(cues, s.lower())
    ]
    return list(dict.fromkeys(s for s in found if _decides(s.lower())))


def _decides(low: str) -> bool:
    if low.endswith(("?", "？", "吗", "呢")) or CODE.search(low):
        return False
    return DECIDED.found(low) or DECIDED_ZH.found(low)


def triples(text: str) -> list[Triple]:
    """The lines of the form `[entity1|entity2][action][goal]`."""
    found = []
    for match in TRIPLE.finditer(text) if "][" in text or "] [" in text else ():
        entities = tuple(dict.fromkeys(part.strip() for part in match[1].split("|") if part.strip()))[:MOST_ENTITIES]
        action, goal = match[2].strip(), match[3].strip()
        if entities and action and goal:
            found.append(Triple(entities, action, goal))
    return found
