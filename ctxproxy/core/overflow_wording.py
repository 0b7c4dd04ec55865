"""What a sign is, and the words that signs are made of: subjects, relations, limits, in English and Chinese.

Patterns read `Marked.text`: lower case, no quotes, figures as `#`. Every quantifier is bounded, so a sign costs time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["overflow", "output_cap", "request_larger_than_tpm", "field_too_long", "rate_limit", "other"]

CLAUSE_CHARS = 110
"""How far subject and limit may stand from their relation."""
MAX_RELATIONS = 40
"""Occurrences of a relation that are looked at."""
_SENTENCE_END = re.compile(r"[.;。!?](?:\s|$)")


@dataclass(frozen=True, slots=True)
class Sign:
    """A row: a `relation` with `before` and `after` it in the same sentence, `unless` not in that sentence, `nowhere` not in the text."""

    name: str
    kind: Kind
    relation: re.Pattern[str]
    before: re.Pattern[str] | None = None
    after: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    nowhere: re.Pattern[str] | None = None
    strength: int = 1
    """Of an overflow: 1 a usual wording, 2 one that names the context window. Of a veto: 1 gives way to an overflow stated with figures, 2 never."""
    shrink_helps: bool = False

    def holds_in(self, text: str) -> bool:
        """Whether the text has this sign."""
        if self.nowhere is not None and self.nowhere.search(text):
            return False
        for found, _ in zip(self.relation.finditer(text), range(MAX_RELATIONS), strict=False):
            before = _SENTENCE_END.split(text[max(0, found.start() - CLAUSE_CHARS) : found.start()])[-1]
            after = _SENTENCE_END.split(text[found.end() : found.end() + CLAUSE_CHARS], maxsplit=1)[0]
            if self._holds(before, found.group(), after):
                return True
        return False

    def _holds(self, before: str, found: str, after: str) -> bool:
        has_subject = self.before is None or self.before.search(before) is not None
        has_limit = self.after is None or self.after.search(after) is not None
        return has_subject and has_limit and (self.unless is None or not self.unless.search(before + found + after))


def first(signs: Iterable[Sign], text: str) -> Sign | None:
    """The first sign of a table that the text has."""
    return next((sign for sign in signs if sign.holds_in(text)), None)


def words(*parts: str) -> re.Pattern[str]:
    """A pattern of alternatives."""
    return re.compile("|".join(parts))


WINDOW = (
    r"(?:(?:slot|max(?:imum)?)[ _]context\b(?! (?:length|window|size|limit|len|budget|token))|context[ _-]?(?:length|window|size|limit|len"
    r"|budget)s?|context[ _]tokens|max[ _]?model[ _]?len(?:gth)?|max[ _]seq(?:uence)?[ _]len(?:gth)?"
    r"|max[ _]position[ _]embeddings|n_ctx(?:_slot)?|num_ctx|session[ _]len|maximum (?:model|sequence) length|model(?:'s)? (?:token|length) limit)"
)
"""Names of a context window."""
EXCEEDS = (
    r"(?:exceed\w{0,6}|overflow\w{0,4}|surpass\w{0,4}|overrun\w{0,4}|beyond|(?:greater|longer|larger|bigger|more|higher) than|above|out of|over the"
    r"|go(?:es)? past|>=?)"
)
INPUT = r"(?:prompts?|inputs?|messages?|conversations?|history|contexts?|requests?|quer(?:y|ies)|texts?|sequences?|chat|tokens?|contents?|length)"
LIMIT = r"(?:max\w*|limit\w*|allowed|permitted|supported|supports|capacity|model|threshold|cache|#)"
OUTPUT = (
    r"(?:max[ _]?(?:completion|output|new|response)?[ _]?tokens(?: to sample)?|maxoutputtokens|maxtokens|num_predict|(?:output|completion|response)"
    r" (?:tokens|length|limit)|(?:requested|max(?:imum)?) output of #|(?:thinking|reasoning)[ _](?:budget|tokens)|budget_tokens"
    r"|maximum tokens you requested|maximum (?:allowed )?(?:number of )?(?:output|completion) tokens|maximum output length)"
)
"""Names of the output asked for."""
FIELD = (
    r"(?:names?|keys?|descriptions?|ids?|identifier|titles?|urls?|metadata|user"
    r"|tags?|labels?|stop(?: sequences?| strings?)?|suffix|headers?|field|uri"
    r"|filename|schema|password)"
)
"""Fields whose length no conversation decides."""

ZH_INPUT = (
    r"(?:输入|輸入|提示词|提示詞|上下文|对话|對話|会话|會話|消息|訊息|请求|請求|内容"
    r"|內容|文本|prompt|tokens?|字数|字數|长度|長度|历史|歷史|问题|query)"
)
ZH_TOO_LONG = r"(?:过长|過長|超长|超長|太长|太長|过大|過大|过多|過多|超限|溢出|太多)"
ZH_EXCEEDS = r"(?:超过|超過|超出|大于|大於|达到|達到|不能超|不得超|不超)"
ZH_OBJECT = (
    r"(?:图片|圖片|图像|圖像|视频|視頻|音频|音訊|文件|档案|檔案|名称|名稱|标题|标签"
    r"|并发|並發|频率|頻率|次数|次數|速率|余额|配额)"
)
ZH_MEDIA = rf"(?:{ZH_OBJECT}|输出|輸出|max_tokens)"

NAMES_WINDOW = re.compile(WINDOW)
JOINT = (
    rf"(?:{INPUT}[^.]{{0,40}}(?:\+|\band\b|plus)[^.]{{0,40}}{OUTPUT})"
    rf"|(?:{OUTPUT}[^.]{{0,24}}(?:\+|\band\b|plus)[^.]{{0,24}}(?:prompt|input|messages))"
)
"""Input and output named as one sum."""
