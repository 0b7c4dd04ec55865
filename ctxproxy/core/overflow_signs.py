"""The table of signs: what refusals say, as wording families of subject, relation and limit. Order matters: vetoes, output caps, overflows.

A wording is one row here and one recorded body in `tests/core/overflow_samples.py`. Patterns read `Marked.text`: lower case, no quotes, figures
as `#`. Every quantifier is bounded, so a row costs time linear in the text. Sources: the providers' error references and issue trackers.
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
_SENTENCE_END = re.compile(r"[.;。!?](?:\s|$)")


@dataclass(frozen=True, slots=True)
class Sign:
    """A row: `relation` with `before` and `after` it in the same sentence, and `unless` not in it."""

    name: str
    kind: Kind
    relation: re.Pattern[str]
    before: re.Pattern[str] | None = None
    after: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    strength: int = 1
    """Of an overflow: 1 a usual wording, 2 one that names the context window. Of a veto: 1 gives way to an overflow stated with figures, 2 never."""
    shrink_helps: bool = False

    def holds_in(self, text: str) -> bool:
        """Whether the text has this sign."""
        for found, _ in zip(self.relation.finditer(text), range(MAX_RELATIONS), strict=False):
            before = _SENTENCE_END.split(text[max(0, found.start() - CLAUSE_CHARS) : found.start()])[-1]
            after = _SENTENCE_END.split(text[found.end() : found.end() + CLAUSE_CHARS], maxsplit=1)[0]
            if self._holds(before, found.group(), after):
                return True
        return False

    def _holds(self, before: str, found: str, after: str) -> bool:
        if self.before is not None and not self.before.search(before):
            return False
        if self.after is not None and not self.after.search(after):
            return False
        return self.unless is None or not self.unless.search(before + found + after)


def first(signs: Iterable[Sign], text: str) -> Sign | None:
    """The first sign of a table that the text has."""
    return next((sign for sign in signs if sign.holds_in(text)), None)


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


WINDOW = (
    r"(?:context[ _-]?(?:length|window|size|limit|len|budget)s?|context[ _]tokens|max[ _]?model[ _]?len(?:gth)?|max[ _]seq(?:uence)?[ _]len(?:gth)?"
    r"|max[ _]position[ _]embeddings|n_ctx(?:_slot)?|num_ctx|session[ _]len|maximum (?:model|sequence) length|model(?:'s)? (?:token|length) limit)"
)
"""Names of a context window."""
EXCEEDS = (
    r"(?:exceed\w{0,6}|overflow\w{0,4}|surpass\w{0,4}|overrun\w{0,4}|beyond|(?:greater|longer|larger|bigger|more|higher) than|above|out of|over the|go(?:es)? past|>=?)"
)
_INPUT = r"(?:prompts?|inputs?|messages?|conversations?|history|contexts?|requests?|quer(?:y|ies)|texts?|sequences?|chat|tokens?|contents?|length)"
_LIMIT = r"(?:max\w*|limit\w*|allowed|permitted|supported|supports|capacity|model|threshold|#)"
_OUTPUT = (
    r"(?:max[ _]?(?:completion|output|new|response)?[ _]?tokens(?: to sample)?|maxoutputtokens|maxtokens|num_predict|(?:output|completion|response) (?:tokens|length|limit)"
    r"|maximum tokens you requested|maximum (?:allowed )?(?:number of )?(?:output|completion) tokens|maximum output length)"
)
_ZH_INPUT = r"(?:输入|輸入|提示词|提示詞|上下文|对话|對話|会话|會話|消息|訊息|请求|請求|内容|內容|文本|prompt|tokens?|字数|字數|长度|長度|历史|歷史|问题|query)"
_ZH_TOO_LONG = r"(?:过长|過長|超长|超長|太长|太長|过大|過大|过多|過多|超限|溢出|太多)"
_ZH_EXCEEDS = r"(?:超过|超過|超出|大于|大於|达到|達到|不能超|不得超|不超)"
_ZH_MEDIA = _re(r"图片|圖片|图像|圖像|视频|視頻|音频|音訊|文件|档案|檔案|名称|名稱|标题|标签|并发|並發|频率|頻率|次数|次數|输出|輸出|max_tokens|速率|余额|配额")
_FIELD = r"(?:names?|keys?|descriptions?|ids?|identifier|titles?|urls?|metadata|user|tags?|labels?|stop|suffix|headers?|field|uri|filename|schema|password)"

VETOES = (
    Sign(
        "rate-window",
        "rate_limit",
        _re(r"(?:tokens?|requests?|images?)[ -]per[ -](?:min|minute|day|hour|second|month)|\b(?:[io]?tp[mdhs]|rp[mdhs]|qp[sm])\b|per[- ]minute|(?:last|this|current) minute"),
        strength=2,
    ),
    Sign(
        "rate-words",
        "rate_limit",
        _re(
            r"rate[ _-]?limit|too many (?:concurrent )?requests|throttl|retry[ -]after|(?:try|retry)(?: again)? (?:in #|later|after)|retry your request|slow down"
            r"|wait before|concurren|rate increased|token rate|request rate|\bdaily\b|\bweekly\b|\bmonthly\b|\bhourly\b|usage limit|quota|resource has been exhausted"
        ),
        strength=2,
    ),
    Sign("rate-words-zh", "rate_limit", _re(r"限流|频率|頻率|速率|过于频繁|過於頻繁|每分钟|每分鐘|每天|每日|每秒|配额|配額|额度|額度|并发|並發|请求次数|請求次數|稍后再试|请稍后"), strength=2),
    Sign("billing-afford", "other", _re(r"prompt tokens limit exceeded: # > #"), strength=2, shrink_helps=True),
    Sign("long-context-tier", "other", _re(r"extra usage is required for long context|long context (?:beta|requests?) (?:is|are) not"), strength=2, shrink_helps=True),
    Sign(
        "billing-words",
        "other",
        _re(
            r"\bcredits?\b|billing|\bbalance\b|\bpayment|\bpurchase|paid (?:account|plan|tier)|upgrade (?:your|to (?:a )?paid)|free tier|insufficient (?:funds|permission)"
            r"|can only afford|余额|餘額|欠费|欠費|充值"
        ),
        strength=2,
    ),
    Sign(
        "content-filter",
        "other",
        _re(
            r"content[ _-]?(?:filter|management|policy|moderation)|safety (?:system|filter|setting|policy)|moderation|prohibited|was flagged|were flagged|jailbreak|inappropriate"
            r"|usage polic|responsible ai|敏感|违规|違規|不安全|审核|審核"
        ),
        strength=2,
    ),
    Sign(
        "media-size",
        "field_too_long",
        _re(r"\b(?:images?|pictures?|photos?|pixels?|megapixels?|pdfs?|audio|videos?|frames?|attachments?|files?|pages|thumbnails?)\b"),
        unless=_re(rf"\btokens?\b|{WINDOW}|context"),
        after=_re(r"exceed|too (?:large|big|long|many)|max|limit|larger|greater|dimension|at most|more than|no more|\bmb\b|bytes|pixels"),
        strength=2,
    ),
    Sign("media-size-zh", "field_too_long", _re(r"(?:图片|圖片|图像|圖像|视频|視頻|音频|音訊|文件|档案|檔案)[^。]{0,16}(?:过大|過大|超过|超過|超出|太大|上限|限制)"), strength=2),
    Sign(
        "field-text",
        "field_too_long",
        _re(
            r"(?:string|value|array|list)(?: is)? too long|expected (?:a string|an array) with maximum length|expected maxlength|at most # (?:characters?|items?|elements?|entries)"
            r"|(?:maximum|max) (?:of # |length (?:is|of) # )?(?:characters|items)|\bitems?\b[^.]{0,20}too long|is too long\. maximum length is"
        ),
        strength=2,
    ),
    Sign("field-items", "field_too_long", _re(r"too many (?:tools?|functions?|images?|items?|documents?|stop|files?|inputs?\b(?! tokens))|max(?:imum)? (?:number of|#) (?!input|prompt|context|output|completion|total|new|the |it )(?:documents?|items?|tools?|functions?|images?|texts?|inputs?\b)"), strength=2),
    Sign("field-characters", "field_too_long", _re(r"max(?:imum)? (?:input |prompt |number of )?(?:input )?characters|characters? (?:limit|count|length)[^.]{0,30}exceed|exceed\w*[^.]{0,30}characters|字符数?[^。]{0,8}(?:超过|超出|上限)|too many characters"), unless=_re(WINDOW), strength=2, shrink_helps=True),
    Sign("field-name", "field_too_long", _re(rf"\b{_FIELD}\b(?: (?:is|are|was|of|in|for|the|length|value|provided)){{0,4}} (?:too long|longer than|exceeds? (?:the )?max)"), strength=2),
    Sign(
        "bytes",
        "field_too_long",
        _re(
            r"# ?(?:bytes|kb|mb|mib|kib|gb)\b|payload|(?:request )?(?:body|entity)(?: is)? too large|content[ -]length|total text bytes|request exceeds the maximum size"
            r"|request (?:size|is) (?:exceeds|too large)|request too large|request_too_large|maximum request size|batch size"
        ),
        unless=_re(rf"\btokens?\b|{WINDOW}|context"),
        strength=2,
        shrink_helps=True,
    ),
    Sign("context-too-small", "other", _re(r"too small"), before=_re(r"context|window"), after=_re(r"minimum|at least|least"), strength=2),
    Sign("not-json", "other", _re(r"(?:invalid|not valid|malformed|failed to parse|could not parse|unable to parse|cannot parse)[^.]{0,24} json|json[^.]{0,24}(?:invalid|malformed|pars|decod)|unexpected token"), strength=2),
    Sign("auth", "other", _re(r"api[ _-]?key|unauthori[sz]ed|authenticat|forbidden|permission|access denied|not authorized|invalid[ _]token|token (?:is |has )?(?:invalid|expired)|expired token|credentials")),
    Sign(
        "model-unknown",
        "other",
        _re(r"not found|does not exist|do not exist|not exist|no such|unknown|invalid|not supported|unsupported|not available|is not a valid|不存在|无效的模型"),
        before=_re(r"\b(?:model|deployment|engine|endpoint|tool|function|method|url|path|模型)\b|模型"),
    ),
    Sign("parameter-unknown", "other", _re(r"(?:unknown|unrecognized|unrecognised|unsupported|unexpected|extra|missing|additional) (?:request )?(?:required )?(?:parameter|argument|field|input|propert|value|keyword|key)|extra inputs are not permitted|invalid schema|is not of type|is not one of|input should be")),
    Sign("overload", "other", _re(r"timed? ?out|timeout|overloaded|unavailable|temporar|bad gateway|upstream connect|connection (?:refused|reset|error|closed)|server is busy|is loading|loading model|not loaded|out of memory|\boom\b|internal error|unexpectedly stopped")),
)
"""What is not an overflow however much it sounds like one; read before anything else."""

_JOINT = _re(rf"(?:{_INPUT}[^.]{{0,40}}(?:\+|\band\b|plus)[^.]{{0,24}}{_OUTPUT})|(?:{_OUTPUT}[^.]{{0,24}}(?:\+|\band\b|plus)[^.]{{0,24}}(?:prompt|input|messages))")

CAPS = (
    Sign("cap-higher-needed", "output_cap", _re(r"max_tokens or model output limit was reached|(?:try again with|use a|increase) (?:a )?higher max")),
    Sign("cap-output-maximum", "output_cap", _re(r"maximum allowed number of output tokens|(?:maximum|max)(?: number of)? (?:output|completion) (?:tokens|length)|supports? at most # (?:completion|output)|(?:output|completion) tokens? (?:limit|must|cannot|exceed)|maximum tokens you requested exceeds"), unless=_JOINT),
    Sign(
        "cap-parameter",
        "output_cap",
        _re(
            r"too (?:large|high|big)|must be|should be|range|greater than|exceed\w*|less than|at most|not valid|invalid|above|> ?#|value of|out of range|larger than|<= ?#|no more than|超过|超出|应小于|不能大于|范围"
        ),
        before=_re(rf"{_OUTPUT}[^+]{{0,70}}$"),
        unless=_JOINT,
    ),
    Sign("cap-range", "output_cap", _re(r"(?:range of|invalid|value of|value for|supported range|parameter|the) (?:the )?(?:max_(?:completion_|output_|new_)?tokens|maxoutputtokens)"), after=_re(r"#|range|value|too"), unless=_JOINT),
)
"""Complaints of the output asked for alone: a smaller prompt changes nothing."""

OVERFLOWS = (
    Sign("sum-over-window", "overflow", _re(r"# ?\+ ?# ?(?:>=?|exceeds?) ?#"), strength=2),
    Sign("window-stated", "overflow", _re(rf"{WINDOW}(?: ?(?:limit|is|of|was|to|at|only|just|currently|set|for|this|model|the|:|=|\(|\[|>|>=|tokens?)){{0,6}} ?\(?#(?! ?(?:char|byte|pixel|item))"), unless=_re(r"too small|minimum is"), strength=2),
    Sign("window-stated-first", "overflow", _re(r"#[ -](?:tokens? )?(?:max(?:imum)? )?context"), before=_re(r"too (?:large|long|big)|exceed|more than|larger|longer"), strength=2),
    Sign("exceeds-window", "overflow", _re(EXCEEDS), after=_re(rf"{WINDOW}|\bcontext\b"), unless=_re(r"time|memory|error (?:comput|calculat)"), strength=2),
    Sign("window-exceeded", "overflow", _re(r"exceed\w{0,6}|overflow\w{0,4}|\bfull\b|exhausted|too (?:long|large|big)|not (?:large|big|long) enough|not enough|超"), before=_re(rf"(?:{WINDOW}|\bcontext\b)[^.]{{0,50}}$"), strength=2),
    Sign("window-too-small", "overflow", _re(r"too small (?:for|to)"), before=_re(WINDOW), after=_re(_INPUT + "|process|handle|hold|fit"), strength=2),
    Sign("no-room-left", "overflow", _re(r"leaves # output tokens|no (?:room|space|tokens?) (?:left |remaining )?for (?:the |any )?(?:output|completion|response|generation)"), strength=2),
    Sign("slot-context", "overflow", _re(r"context shift is disabled|context shift|slot context|keep the first # tokens|\bn_keep\b|tokens to keep from the initial prompt"), unless=_re(r"batch size"), strength=2),
    Sign("fits-not", "overflow", _re(r"(?:does not|do not|doesn't|don't|cannot|can't|won't|will not|not|to) (?:\w+ )?fit (?:in|into|within|the|inside)"), before=_re(_INPUT)),
    Sign("input-range", "overflow", _re(r"range of (?:input|prompt) (?:length|tokens) should be")),
    Sign("input-maximum", "overflow", _re(r"max(?:imum)?(?: allowed| number of)? (?:prompt|input)[ _]?(?:length|tokens?|size)(?: (?:is|of))?[ :=(]{0,3}#")),
    Sign("size-in-tokens", "overflow", _re(r"max(?:imum)?(?: request)? size:? (?:is |of )?# tokens"), before=_re(r"too (?:large|long|big)")),
    Sign(
        "input-over-limit",
        "overflow",
        _re(rf"{EXCEEDS}|size limit exceeded"),
        before=_re(_INPUT),
        after=_re(rf"{_LIMIT}|by # tokens"),
        unless=_re(r"(?:user|tool|function|stop|image|time|retr\w+|requests?) (?:limit|count)|character|images?\b(?![^.]{0,60}token)|too many|minimum|older than|newer"),
    ),
    Sign("limit-over-by", "overflow", _re(r"(?:limit|maximum|max)(?: length)? exceeded by # tokens")),
    Sign("token-limit-exceeded", "overflow", _re(r"(?:token|tokens|prompt|input|length)[ _](?:length |count )?(?:limit|limits|maximum)"), after=_re(r"^[^.]{0,24}(?:exceeded|reached|超)")),
    Sign(
        "input-bounded",
        "overflow",
        _re(
            r"must (?:be|have)(?: strictly)? (?:less|fewer|smaller|shorter|at most|no more|under|below|<)|must not be (?:more|longer|larger|greater)|(?:cannot|can not|must not|should not|may not|can't) (?:exceed|be (?:longer|larger|greater|more))"
            r"|do not exceed|should be (?:less|fewer|smaller|shorter)|supports? (?:only )?up to|only supports?|is limited to|limit is #|limit of #"
        ),
        before=_re(_INPUT),
        after=_re(r"#|max|limit|context|$"),
        unless=_re(r"\btools?\b|\bfunctions?\b|images?\b|character|\bstop\b|temperature|top_[pk]|penalty|logprobs|\bn must"),
    ),
    Sign("negative-room", "overflow", _re(r"max_(?:completion_|new_)?tokens[^.]{0,30}at least #, ?(?:but )?(?:got|received) -(?!1\b)[\d#]")),
    Sign("too-long", "overflow", _re(r"too (?:long|large|big|lengthy)|longer than|larger than"), before=_re(rf"\b(?:prompts?|inputs?|messages|conversation|history|request|context|query|tokens?|texts?|sequence|chat)\b[^.]{{0,60}}$"), unless=_re(rf"\b{_FIELD}\b (?:is )?too|request (?:is )?too (?:large|big)|entity|batch size|schema")),
    Sign("too-many-tokens", "overflow", _re(r"too many (?:\w+ )?tokens|number of (?:input |prompt )?tokens[^.]{0,30}too|tokens? in request more than|too_many_tokens")),
    Sign("conversation-limit", "overflow", _re(r"(?:reached|exceeded|hit) (?:its|the|your|our)? ?(?:maximum )?(?:conversation|context) (?:length |size )?limit|conversation length exceeded|maximum conversation length")),
    Sign("overflow-words", "overflow", _re(r"(?:context|prompt|input|token)[ _-](?:length[ _-]|window[ _-])?(?:overflow|exceeded|limit[ _]exceeded)|contextwindowexceeded|promptlimit|tokens_too_long"), unless=_re(r"quota")),
    Sign(
        "advice",
        "overflow",
        _re(r"(?:reduce|shorten|decrease|shrink|trim|cut down|reducing|shortening)[^.]{0,36}\b(?:prompt|input|messages?|conversation|context|history)\b|(?:shorter|smaller) (?:prompt|input|messages?|conversation)"),
        unless=_re(r"\bimages?\b(?![^.]{0,60}token)|\bnumber of (?:messages|inputs|tools)|batch size|format"),
    ),
    Sign("zh-window", "overflow", _re(rf"(?:上下文|窗口)[^。]{{0,20}}(?:{_ZH_EXCEEDS}|{_ZH_TOO_LONG}|超|不足)|{_ZH_EXCEEDS}[^。]{{0,24}}(?:上下文|窗口)"), unless=_ZH_MEDIA, strength=2),
    Sign("zh-too-long", "overflow", _re(_ZH_TOO_LONG), before=_re(rf"{_ZH_INPUT}[^。]{{0,30}}$"), unless=_ZH_MEDIA),
    Sign("zh-over-limit", "overflow", _re(_ZH_EXCEEDS), before=_re(_ZH_INPUT), after=_re(r"限制|上限|最大|长度|長度|模型|支持|#"), unless=_ZH_MEDIA),
    Sign("zh-over-limit-reversed", "overflow", _re(r"(?:超过|超過|超出)(?:了)?(?:模型|系统|系統)?(?:支持的|的|允许的)?最大(?:长度|長度|token|输入|輸入)"), unless=_ZH_MEDIA),
    Sign("ja-ko", "overflow", _re(r"(?:コンテキスト|トークン|プロンプト|入力)[^。]{0,30}(?:超|長すぎ)|(?:컨텍스트|토큰|프롬프트|입력)[^.]{0,30}(?:초과|너무 (?:깁|길|긴))")),
)
"""Overflows; the ones that name the window first."""

CODES = (
    Sign("code-window", "overflow", _re(r"context(?:length|window|size|limit|len)?(?:is|was)?(?:exceed|overflow|toolong|toolarge|limit)|exceed(?:s|ed)?(?:the)?(?:max)?context|outofcontext|maxcontext"), strength=2),
    Sign("code-prompt", "overflow", _re(r"(?:max)?prompttokens?exceed|(?:prompt|input|tokens)toolong|toomanyinputtokens|inputlengtherror|promptlimit|tokenslimitreached|inputtokensexceed|prompttoolarge"), strength=2),
    Sign("code-number", "overflow", _re(r"^(?:1261|10907)$"), strength=2),
)
"""Codes of an error object, read without blanks and marks. 1261: Zhipu, prompt over the maximum length; 10907: iFlytek, tokens over the limit."""

FIELD_CODES = (
    Sign("code-characters", "field_too_long", _re(r"characterstoolong"), shrink_helps=True),
    Sign("code-field", "field_too_long", _re(r"abovemaxlength|stringtoolong|toolongstring"), shrink_helps=False),
    Sign("code-bytes", "field_too_long", _re(r"requesttoolarge|payloadtoolarge|requestentitytoolarge"), shrink_helps=True),
)

STATUS_CODES = (
    (re.compile(r"ratelimit|insufficientquota|resourceexhausted|toomanyrequests|throttl|quota"), 429),
    (re.compile(r"overloaded|unavailable"), 503),
    (re.compile(r"authentication|apikey|permission|unauthorized|forbidden"), 401),
    (re.compile(r"insufficientcredit|billing|payment"), 402),
    (re.compile(r"timeout"), 504),
)
"""HTTP statuses that codes in words stand for."""

SHRINKABLE_FIELD = re.compile(r"(?:invalid|parameter|field)?\s*\b(?:messages?|input|prompt|contents?)(?:\[#?\d*\]|_?\d*\b)[\w\[\]#.]{0,40}:? (?:string|array|value|list)?")
"""A field whose length the conversation decides."""

TPM = re.compile(r"limit:? #(?:, used:? (?P<used>#))?,? ?requested:? (?P<requested>#)")
"""OpenAI's and Groq's figures of a limit per minute."""
