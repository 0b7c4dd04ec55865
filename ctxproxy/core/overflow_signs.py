"""The table of overflows, as wording families of subject, relation and limit; rows that name the window stand first.

A wording is one row here and one recorded body in `tests/core/overflow_samples.py`. Sources: the providers' error references and issue trackers.
"""

from __future__ import annotations

from ctxproxy.core.overflow_wording import EXCEEDS, FIELD, INPUT, LIMIT, WINDOW, ZH_EXCEEDS, ZH_INPUT, ZH_MEDIA, ZH_OBJECT, ZH_TOO_LONG, Sign, words

_IMAGES_ALONE = r"\bimages?\b(?![^.]{0,60}token)"
_WINDOW_LINK = r"(?: ?(?:limit|is|of|was|to|at|only|just|currently|set|for|this|model|the|:|=|\(|\[|>|>=|tokens?)){0,6} ?\(?"
_SUBJECT_TOO_LONG = r"\b(?:prompts?|inputs?|messages|conversation|history|request|context|query|tokens?|texts?|sequence|chat)\b[^.]{0,60}$"

OVERFLOWS = (
    Sign("sum-over-window", "overflow", words(r"# ?\+ ?# ?(?:>=?|exceeds?) ?#"), strength=2),
    Sign(
        "window-stated",
        "overflow",
        words(rf"{WINDOW}{_WINDOW_LINK}(?:#|\d+k\b)(?! ?(?:char|byte|pixel|item))"),
        unless=words(r"too small|minimum is|available memory|value (?:for|of) n(?:um)?_ctx"),
        strength=2,
    ),
    Sign(
        "window-stated-first",
        "overflow",
        words(r"#[ -](?:tokens? )?(?:max(?:imum)? )?context"),
        before=words(r"too (?:large|long|big)|exceed|more than|larger|longer"),
        strength=2,
    ),
    Sign(
        "exceeds-window",
        "overflow",
        words(EXCEEDS, r"too (?:long|large|big)"),
        after=words(WINDOW, r"\bcontext\b(?! cache)"),
        unless=words(r"time|memory|error (?:comput|calculat)"),
        strength=2,
    ),
    Sign(
        "window-exceeded",
        "overflow",
        words(r"exceed\w{0,6}|overflow\w{0,4}|\bfull\b|exhausted|too (?:long|large|big)|not (?:large|big|long) enough|not enough"),
        before=words(rf"(?:{WINDOW}|\bcontext\b)[^.]{{0,50}}$"),
        strength=2,
    ),
    Sign(
        "window-too-small",
        "overflow",
        words(r"too small (?:for|to)"),
        before=words(WINDOW),
        after=words(INPUT, "process|handle|hold|fit"),
        strength=2,
    ),
    Sign(
        "no-room-left",
        "overflow",
        words(r"leaves # output tokens|no (?:room|space|tokens?) (?:left |remaining )?for (?:the |any )?(?:output|completion|response|generation)"),
        strength=2,
    ),
    Sign(
        "slot-context",
        "overflow",
        words(r"context shift|slot context|keep the first # tokens|\bn_keep\b|tokens to keep from the initial prompt"),
        unless=words(r"batch size"),
        strength=2,
    ),
    Sign(
        "fits-not",
        "overflow",
        words(
            r"(?:unable to|not able to|cannot|can't|could not|failed to|does not|do not|doesn't|don't|won't|will not) (?:\w+ )?fit\b",
            r"too \w+ to fit\b",
        ),
        after=words(INPUT, WINDOW, "model"),
        unless=words(_IMAGES_ALONE),
    ),
    Sign(
        "input-range",
        "overflow",
        words(
            r"range of (?:input|prompt) (?:length|tokens) should be",
            r"(?:input|prompt) (?:length|tokens)(?: of (?:the )?\w+)? (?:should|must) be (?:with)?in (?:the )?range",
        ),
    ),
    Sign(
        "model-supports",
        "overflow",
        words(r"supports? (?:only )?(?:up to|at most|a maximum of) # (?:input |context |prompt )?tokens?"),
        after=words(INPUT),
    ),
    Sign(
        "input-maximum",
        "overflow",
        words(r"max(?:imum)?(?: allowed| number of)? (?:prompt|input)[ _]?(?:length|tokens?|size)(?: (?:is|of|for|this|the|model)){0,4}[ :=(]{0,3}#"),
    ),
    Sign(
        "token-maximum",
        "overflow",
        words(r"max(?:imum)?(?: allowed)?(?: number of)? tokens(?: allowed)?(?: is| are|:| of) #"),
        after=words(r"\bprompt|\binput|\bmessages"),
    ),
    Sign("size-in-tokens", "overflow", words(r"max(?:imum)?(?: request)? size:? (?:is |of )?# tokens")),
    Sign(
        "input-over-limit",
        "overflow",
        words(rf"{EXCEEDS}|size limit exceeded"),
        before=words(INPUT),
        after=words(rf"{LIMIT}|by # tokens"),
        unless=words(
            r"not (?:supported|available|allowed|permitted) (?:with|for|when|in|on)\b[^.]{0,40}(?:context|prompt|input)",
            r"(?:user|tool|function|stop|image|time|retr\w+|requests?) (?:limit|count)|character|too many|minimum|older than|newer",
            _IMAGES_ALONE,
        ),
    ),
    Sign("limit-over-by", "overflow", words(r"(?:limit|maximum|max)(?: length)? exceeded by # tokens")),
    Sign(
        "token-limit-exceeded",
        "overflow",
        words(r"(?:token|tokens|prompt|input|length)[ _](?:length |count )?(?:limit|limits|maximum)"),
        after=words(r"^[^.]{0,24}(?:exceeded|reached)"),
    ),
    Sign(
        "input-bounded",
        "overflow",
        words(
            r"must (?:be|have)(?: strictly)? (?:less|fewer|smaller|shorter|at most|no more|under|below|<)|must not be (?:more|longer|larger|greater)",
            r"(?:cannot|can not|must not|should not|may not|can't) (?:exceed|be (?:longer|larger|greater|more))|do not exceed",
            r"should be (?:less|fewer|smaller|shorter)|supports? (?:only )?up to|only supports?|is limited to|limit is #|limit of #",
        ),
        before=words(INPUT),
        after=words(r"#|max|limit|context|$"),
        unless=words(r"\btools?\b|\bfunctions?\b|images?\b|character|\bstop\b|temperature|top_[pk]|penalty|logprobs|\bn must|budget"),
    ),
    Sign(
        "negative-room",
        "overflow",
        words(r"max_(?:completion_|new_)?tokens[^.]{0,30}at least #, ?(?:but )?(?:got|received) -(?!1\b)[\d#]"),
    ),
    Sign(
        "too-long",
        "overflow",
        words(r"too (?:long|large|big|lengthy)|longer than|larger than"),
        before=words(_SUBJECT_TOO_LONG),
        unless=words(rf"\b{FIELD}\b (?:is )?too|request (?:is )?too (?:large|big)|entity|batch size|schema"),
    ),
    Sign(
        "too-many-tokens",
        "overflow",
        words(r"too many (?:\w+ )?tokens|number of (?:input |prompt )?tokens[^.]{0,30}too|tokens? in request more than|too_many_tokens"),
    ),
    Sign(
        "conversation-limit",
        "overflow",
        words(
            r"(?:reached|exceeded|hit) (?:its|the|your|our)? ?(?:maximum )?(?:conversation|context) (?:length |size )?limit",
            r"conversation length exceeded|maximum conversation length",
        ),
    ),
    Sign(
        "overflow-words",
        "overflow",
        words(
            r"(?:context|prompt|input|token)[ _-](?:length[ _-]|window[ _-])?(?:overflow|exceeded|limit[ _]exceeded)",
            r"contextwindowexceeded|promptlimit|tokens_too_long",
        ),
    ),
    Sign(
        "advice",
        "overflow",
        words(
            r"(?:reduce|shorten|decrease|shrink|trim|cut down|reducing"
            r"|shortening)[^.]{0,36}\b(?:prompt|input|messages?|conversation|context|history)\b",
            r"(?:shorter|smaller) (?:prompt|input|messages?|conversation)",
        ),
        unless=words(_IMAGES_ALONE, r"\bnumber of (?:messages|inputs|tools)|batch size|format"),
    ),
    Sign(
        "zh-window",
        "overflow",
        words(rf"(?:上下文|窗口)[^。]{{0,20}}(?:{ZH_EXCEEDS}|{ZH_TOO_LONG}|超|不足|已满|用完|用尽)|{ZH_EXCEEDS}[^。]{{0,24}}(?:上下文|窗口)"),
        unless=words(ZH_OBJECT, r"^(?!.*(?:输入|輸入|prompt)).*(?:输出|輸出|max_tokens)"),
        strength=2,
    ),
    Sign(
        "zh-window-stated",
        "overflow",
        words(r"(?:上下文|窗口)(?:长度|長度|大小|窗口|限制|上限|最大|仅|只){0,3}(?:为|為|是|有|:)? ?#"),
        after=words("缩短|縮短|减少|減少|请求|請求|输入|輸入|实际|當前|当前"),
        strength=2,
    ),
    Sign("zh-too-long", "overflow", words(ZH_TOO_LONG), before=words(rf"{ZH_INPUT}[^。]{{0,30}}$"), unless=words(ZH_MEDIA)),
    Sign(
        "zh-over-limit",
        "overflow",
        words(ZH_EXCEEDS),
        before=words(ZH_INPUT),
        after=words(r"限制|上限|最大|长度|長度|模型|支持|#"),
        unless=words(ZH_MEDIA),
    ),
    Sign(
        "zh-over-maximum",
        "overflow",
        words(r"(?:超过|超過|超出)了?(?:模型|系统|系統)?(?:支持的|允许的|的)?最大(?:长度|長度|token|输入|輸入)"),
        unless=words(ZH_MEDIA),
    ),
    Sign(
        "de-fr-es",
        "overflow",
        words(
            r"überschreite\w{0,3}[^.]{0,40}(?:kontext|maximale|token)|(?:kontext\w{0,9}|eingabe|prompt)[^.]{0,60}(?:überschritten|zu lang)",
            r"dépass\w{0,4}[^.]{0,40}(?:contexte|maxim|tokens)|(?:supera|excede)[^.]{0,40}(?:contexto|máxim|tokens)",
        ),
        unless=words(r"imag|bild|datei|fich|archivo|requests|minut"),
    ),
    Sign(
        "ja-ko",
        "overflow",
        words(
            r"コンテキスト[^。]{0,14}# ?トークン|(?:コンテキスト|トークン|プロンプト|入力)[^。]{0,30}(?:超|長すぎ)",
            r"(?:컨텍스트|토큰|프롬프트|입력)[^.]{0,30}(?:초과|너무 (?:깁|길|긴))",
        ),
    ),
)

COMPARED = Sign(
    "figures-compared",
    "overflow",
    words(r"tokens?\b|\bcontext\b"),
    nowhere=words(r"budget|cache|thinking|reasoning|\bminimum|at least", ZH_MEDIA, _IMAGES_ALONE),
)
"""Holds where the figures say by their roles that more is asked for than is allowed, however the sentence puts it."""

CODES = (
    Sign(
        "code-window",
        "overflow",
        words(
            r"context(?:length|window|size|limit|len)?(?:is|was)?(?:exceed|overflow"
            r"|toolong|toolarge|limit)|exceed(?:s|ed)?(?:the)?(?:max)?context|outofcontext"
        ),
        strength=2,
    ),
    Sign(
        "code-prompt",
        "overflow",
        words(
            r"(?:max)?prompttokens?exceed|(?:prompt|input|tokens)toolong|toomanyinputtokens|inputlengtherror|promptlimit|tokenslimitreached",
            r"inputtokens(?:limit)?exceed|prompttoolarge|prompttokenlimit|exceeded?in(?:the)?prompt",
        ),
        strength=2,
    ),
    Sign("code-number", "overflow", words(r"^(?:1261|10907)$"), strength=2),
)
"""Codes of an error object, read without blanks and marks. 1261: Zhipu, prompt over the maximum length; 10907: iFlytek, tokens over the limit."""
