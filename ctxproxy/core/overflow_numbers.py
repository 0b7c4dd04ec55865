"""The figures of an overflow by their role in the sentence, never by their size: window, prompt, completion, request, excess.

A figure is taken once, by the first row that claims it. Rows name where a figure stands; figures of other units are claimed by none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ctxproxy.core.overflow_text import Marked
from ctxproxy.core.overflow_wording import WINDOW

MIN_WINDOW_TOKENS = 128
MAX_WINDOW_TOKENS = 20_000_000
"""Bounds of what is believed to be a window: the smallest real servers run with 256, the largest announced windows have 10,000,000."""

_UNIT = r"(?! ?(?:char|byte|pixel|item|image|kb|mb|gb|message|page|second|minute|day|%|document|tool|inputs?\b(?! tokens)|个?字|条|张|次))"
_LINK = r"(?: ?(?:limit|is|of|was|to|at|only|just|currently|set|loaded|with|for|this|model|the|allowed|tokens?|:|=|\(|\[|>=?|<=?)){0,6} ?"
_MAXIMUM = (
    r"(?!max_(?:completion_|output_|new_)?tokens)max(?:imum)?[ _](?:number of |num[ _]|allowed |permitted |supported )*"
    r"(?:(?:input|prompt|total|token|message|request|model|combined)[ _]){0,2}(?:tokens?(?: (?:count"
    r"|size|limit|length))?|length|len|size|context)(?: of tokens)?(?: allowed| supported)?"
)
_BOUND = (
    r"(?:exceed\w{0,6}(?! ?: ?#)|over|above|beyond|(?:greater|longer|larger|more) than"
    r"|less than(?: or equal to)?|fewer than|smaller than|at most|up to|no more than|limited to"
    r"|not exceed|maximum|max|limit|限制|上限|最大|超过|超出|不超过|支持|<=?|>=?)"
)
_BOUND_LINK = (
    r"(?: ?(?:the|its|our|model'?s?|maximum|max|limit|of|allowed|input|prompt|token|for|this|model|context"
    r"|tokens|total|length|size|is|was|to|only|supported|number|为|是|:|=|\(|\[)){0,8} ?"
)
_NOT_OVER = (
    r"(?! ?(?:tokens? ?)?(?:is |has |, which |which )?(?:greater|larger|longer|more than"
    r"|exceed(?!ed\b(?! (?:the|its|our|model|max|limit|#)))|above|over\b|>))"
)
_ZH_UNIT = r"(?! ?(?:个?字符|个?字|字节|张|条|次|元))"
_ZH_LINK = r"[^#。;]{0,14}"
_OF_PROMPT = r"(?:tokens? )?(?:\w+ )?(?:in|from|for|of) (?:the |your )?(?:text |tool |user )?(?:inputs?|messages?|prompt|request messages)\b"
_OF_COMPLETION = r"(?:tokens? )?(?:in|for|of|as) (?:the |your )?(?:completion|output|response|reply|generation)\b"
_PROMPT_WORD = (
    r"(?<!max )(?<!maximum )(?<!max_)(?<!allowed )(?:prompt|inputs?|messages?"
    r"|request|conversation|tokens?|text|sequence|context|输入|提示词|上下文长度|上下文)"
)
_PROMPT_LINK = (
    r"(?:[ _](?:tokens?|length|count|size|text|ids|total|number))*(?: ?(?:is|was|were|has|have"
    r"|had|contains?|needs?|requires?|resulted|resulting|in|of|with|uses|used|too|long|large|length|tokens?"
    r"|total|token|count|at|least|about|approximately|currently|now|which|input|prompt|shape|的|了|长度|数量?|为|是|共|约|:|=|\(|,)){0,8} ?"
)


@dataclass(frozen=True, slots=True)
class Figures:
    """Tokens by role; None where nothing is said."""

    limit: int | None = None
    prompt: int | None = None
    completion: int | None = None
    requested: int | None = None
    over: int | None = None


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


ROWS: tuple[re.Pattern[str], ...] = (
    _re(r"(?P<prompt>#) ?\+ ?(?P<completion>#) ?(?:>=?|exceeds?) ?(?P<limit>#)"),
    _re(r"must be <= ?(?P<limit>#)[^#]{0,12}given:? (?P<prompt>#) inputs? tokens and (?P<completion>#)"),
    _re(r"(?:exceed\w{0,6}|over|too long)[^#.]{0,50}\bby (?:about |approximately )?(?P<over>#)"),
    _re(r"\brange[^#\[]{0,40}\[ ?#, ?(?P<limit>#)"),
    _re(rf"{WINDOW}{_LINK}(?P<limit>#){_UNIT}{_NOT_OVER}"),
    _re(r"(?P<prompt>#) ?/ ?(?P<limit>#)|(?<!used )(?P<prompt2>#) (?:out )?of (?P<limit2>#) tokens"),
    _re(r"\+ max_(?:completion_|output_|new_)?tokens ?= ?(?P<requested>#)"),
    _re(rf"(?P<prompt>#)(?: (?:input |prompt )?tokens?)? >=? (?P<limit>#){_UNIT}(?! ?-)"),
    _re(rf"{_MAXIMUM}{_LINK}(?P<limit>#){_UNIT}{_NOT_OVER}"),
    _re(rf"(?:超过|超過|超出|大于|大於)(?!的?部分)[^#。;]{{0,24}}(?P<limit>#){_ZH_UNIT}"),
    _re(r"(?P<limit>#)[ -](?:tokens? )?(?:max(?:imum)? )?(?:context|token limit|limit\b|max(?:imum)?\b)"),
    _re(rf"{_BOUND}{_BOUND_LINK}(?P<limit>#){_UNIT}"),
    _re(rf"(?:上下文|窗口|最大|上限|限制|最多|超过|超出|支持){_ZH_LINK}(?P<limit>#){_ZH_UNIT}"),
    _re(r"resulted in (?:about |approximately )?(?P<prompt>#)"),
    _re(rf"(?<!upper bound for )(?<!input length of )(?P<prompt>#) {_OF_PROMPT}"),
    _re(rf"(?P<completion>#) {_OF_COMPLETION}"),
    _re(r"(?<!leaves )(?P<completion>#) (?:output|completion|max_new_tokens|new tokens|max_tokens)"),
    _re(r"max_(?:new_|completion_|output_)?tokens(?: or max_completion_tokens)?(?: ?(?:is|of|value|too|large|:|=|\()){1,5} ?(?P<completion>#)"),
    _re(r"(?<!upper bound for )(?<!input length of )(?P<prompt>#) (?:input|prompt)s? tokens?\b"),
    _re(r"(?:keep the first|n_keep \(?|given:?|received:?|received client|\bgot:?|\bsent:?|actual(?:ly)?:?|实际为?:?|当前为?:?) ?(?P<prompt>#)"),
    _re(
        r"\(?requested:? (?P<requested>#)|requested (?:about |approximately |a total of "
        r"|at least )?(?P<requested2>#)(?: tokens)?(?! (?:output|completion|max))"
    ),
    _re(
        r"(?:total(?: tokens?)?(?: count)?(?: ?(?:of|is|:|=))?|current length is|max_total_tokens \(?"
        r"|(?:input and|prompt and) [\w ]{0,24}tokens \(?) ?(?:at least )?(?P<requested>#)"
    ),
    _re(r"only (?:has|allows|supports|accepts|permits) (?:up to )?(?P<limit>#)|only (?P<limit2>#) (?:tokens )?(?:is|are) "),
    _re(rf"{_PROMPT_WORD}{_PROMPT_LINK}(?P<prompt>#){_UNIT}"),
    _re(r"(?P<prompt>#)(?: tokens?)?,? (?:which )?(?:has |have )?exceed"),
    _re(r"(?P<prompt>#) (?:tokens? )?(?:were|was|are|have been) (?:sent|given|provided|received|submitted)"),
    _re(
        rf"(?:\bcontext(?: of| is|:|=)?|kontextfenster[^#.]{{0,20}}|contexte[^#.]{{0,20}}|contexto[^#.]{{0,20}}"
        rf"|コンテキスト[^#。]{{0,14}}) ?\(?(?P<limit>#){_UNIT}"
    ),
)
"""In order of trust: a figure that an earlier row has claimed is no other row's."""

_LONE_PARENTHESIS = re.compile(r"(?:exceeds? (?:the )?limit|limit exceeded) ?\(#\)")
"""`exceeds limit (2013)`: the figure is the error's number (MiniMax), unless another figure stands beside it."""
_NUMBER_OF_ELSE = re.compile(
    r"(?:\bcode|\bid|\bport|\bstatus|\berrno|error (?:no\.?|number)|错误码|错误代码|状态码|编号)[ :=(]{0,3}(?P<it>#)(?! ?tokens?\b)"
)
"""Figures that count nothing: of an error, a request, a port."""


def figures_of(said: Marked, named: Iterable[tuple[str, int]] = (), codes: Iterable[str] = ()) -> Figures:
    """The figures of one statement; named ones win over those in the text; no figure that is one of the error's own codes is a window."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    if len(said.figures) == 1 and _LONE_PARENTHESIS.search(said.text):
        taken.add(said.marks[0])
    taken.update(match.start("it") for match in _NUMBER_OF_ELSE.finditer(said.text))
    for row in ROWS:
        _claim(row, said, found, taken)
    found.update(named)
    if str(found.get("limit")) in set(codes):
        del found["limit"]
    return completed(Figures(**found))


def _claim(row: re.Pattern[str], said: Marked, found: dict[str, int], taken: set[int]) -> None:
    """Give the figures of the row's first match whose roles are still open to them."""
    for match in row.finditer(said.text):
        places = {role.rstrip("2"): match.start(role) for role, text in match.groupdict().items() if text is not None}
        if taken.intersection(places.values()) or found.keys() & places.keys():
            continue
        for role, place in places.items():
            taken.add(place)
            found[role] = said.figure_at(place)
        return


def completed(figures: Figures) -> Figures:
    """With what follows from the rest: the sum of prompt and completion."""
    if figures.requested is not None or figures.prompt is None:
        return figures
    return replace(figures, requested=figures.prompt + (figures.completion or 0))


def is_window(tokens: int | None) -> bool:
    """Whether a stated limit can be a context window."""
    return tokens is not None and MIN_WINDOW_TOKENS <= tokens <= MAX_WINDOW_TOKENS


def clamp_helps(figures: Figures) -> bool | None:
    """Whether a lower max_tokens alone would do; None if it cannot be told."""
    limit, completion = figures.limit, figures.completion
    prompt = figures.prompt
    if prompt is None and figures.requested is not None and completion is not None:
        prompt = figures.requested - completion
    if limit is None or prompt is None:
        return None
    if prompt >= limit:
        return False
    return None if completion is None else completion > 0
