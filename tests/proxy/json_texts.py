"""Strategies for JSON as nobody would write it: odd blanks, escapes, doubled keys, numbers that no float holds."""

from __future__ import annotations

import json

from hypothesis import strategies as st

BLANKS = st.sampled_from(["", "", "", " ", "\n", "\t ", "\r\n  "])
NUMBERS = st.sampled_from(["0", "-0", "1.10", "1E+5", "123456789012345678901234567890", "1e400", "0.1000000000000000055511151231257827", "-1e-9"])
TEXTS = st.sampled_from(
    [r'"\ud83c"', r'"\udf89 \ud83c"', r'"\u00e9\/\b"', '"é💥"', '""', r'"a\"b"', r'"\\"', '"x_context"', '"\u2028"', '"\x7f"']
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: json.dumps(text, ensure_ascii=False))
SCALARS = NUMBERS | TEXTS | st.sampled_from(["true", "false", "null"])
KEYS = st.sampled_from(['"a"', r'"\u0061"', '"b"', '"metadata"', '"é"', '""', r'"\ud83c"'])


@st.composite
def listed(draw: st.DrawFn, items: st.SearchStrategy[str], *, least: int = 0) -> str:
    """An array of texts with blanks about."""
    parts = draw(st.lists(items, min_size=least, max_size=4))
    return "[" + draw(BLANKS) + ",".join(f"{draw(BLANKS)}{part}{draw(BLANKS)}" for part in parts) + "]"


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str], fixed: tuple[tuple[str, st.SearchStrategy[str]], ...] = ()) -> str:
    """An object with the fixed members, any others (keys may come twice), in any order."""
    members = [(key, draw(value)) for key, value in fixed] + draw(st.lists(st.tuples(KEYS, values), max_size=3))
    shuffled = draw(st.permutations(members))
    return "{" + draw(BLANKS) + ",".join(f"{draw(BLANKS)}{key}{draw(BLANKS)}:{draw(BLANKS)}{value}" for key, value in shuffled) + draw(BLANKS) + "}"


VALUES = st.recursive(SCALARS, lambda inner: listed(inner) | objects(inner), max_leaves=6)
ROLES = st.sampled_from(['"user"', '"assistant"', '"system"', '"developer"', '"tool"', r'"\u0075ser"', '"critic"'])
MESSAGES = objects(VALUES, (('"role"', ROLES), ('"content"', TEXTS | VALUES)))
BODIES = objects(VALUES, (('"model"', TEXTS), ('"messages"', listed(MESSAGES, least=1)), ('"stream"', st.sampled_from(["true", "false", "null"]))))
"""Bodies of chat completion requests; most would be refused, all are JSON."""
