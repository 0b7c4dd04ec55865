"""The table of what is no overflow, however much it sounds like one; read before `overflow_signs`, in this order.

Sources: the providers' error references (OpenAI, Anthropic, Gemini, Bedrock, Groq, OpenRouter, DashScope, Zhipu, Ark, Qianfan), and the collected
answers of real servers that the tests replay.
"""

from __future__ import annotations

import re

from ctxproxy.core.overflow_wording import FIELD, JOINT, OUTPUT, WINDOW, Sign, words

_ABOUT_TOKENS = words(r"\btokens?\b", WINDOW, "context")

VETOES = (
    Sign(
        "rate-window",
        "rate_limit",
        words(
            r"(?:tokens?|requests?|images?)(?:[ -]per[ -]|/)(?:min|minute|day|hour|second|month)",
            r"\b(?:[io]?tp[mdhs]|rp[mdhs]|qp[sm])\b|per[- ]minute|(?:last|this|current) minute",
        ),
        strength=2,
    ),
    Sign(
        "rate-words",
        "rate_limit",
        words(
            r"rate[ _-]?limit|too many (?:concurrent )?requests|throttl|retry[ -]after"
            r"|(?:try|retry)(?: again)? (?:in #|later|after)|retry your request",
            r"slow down|wait before|concurren|rate increased|token rate|request rate|\b(?:daily|weekly|monthly|hourly)\b|this (?:month|week|hour)",
            r"\btoday\b|usage limit|quota|resource has been exhausted",
        ),
        strength=2,
    ),
    Sign(
        "rate-words-zh",
        "rate_limit",
        words(r"限流|频率|頻率|速率|过于频繁|過於頻繁|每分钟|每分鐘|每天|每日|每秒|配额|配額|额度|額度|并发|並發|请求次数|請求次數|稍后再试|请稍后"),
        strength=2,
    ),
    Sign("billing-afford", "other", words(r"prompt tokens limit exceeded: # > #"), strength=2, shrink_helps=True),
    Sign(
        "long-context-tier",
        "other",
        words(r"extra usage is required for long context|long context (?:beta|requests?) (?:is|are) not"),
        strength=2,
        shrink_helps=True,
    ),
    Sign(
        "billing-words",
        "other",
        words(
            r"\bcredits?\b|billing|\bbalance\b|\bpayment|\bpurchase|paid (?:account|plan|tier)|upgrade (?:your|to (?:a )?paid)|free tier",
            r"insufficient (?:funds|permission)|can only afford|余额|餘額|欠费|欠費|充值",
        ),
        strength=2,
    ),
    Sign(
        "content-filter",
        "other",
        words(
            r"content[ _-]?(?:filter|management|policy|moderation)|safety (?:system"
            r"|filter|setting|policy)|moderation|prohibited|was flagged|were flagged",
            r"jailbreak|inappropriate|usage polic|responsible ai|敏感|违规|違規|不安全|审核|審核",
        ),
        strength=2,
    ),
    Sign(
        "media-size",
        "field_too_long",
        words(r"\b(?:images?|pictures?|photos?|pixels?|megapixels?|pdfs?|audio|videos?|frames?|attachments?|files?|pages|thumbnails?)\b"),
        after=words(r"exceed|too (?:large|big|long|many)|max|limit|larger|greater|dimension|at most|more than|no more|\bmb\b|bytes|pixels"),
        unless=_ABOUT_TOKENS,
        strength=2,
    ),
    Sign(
        "media-size-zh",
        "field_too_long",
        words(r"(?:图片|圖片|图像|圖像|视频|視頻|音频|音訊|文件|档案|檔案)[^。]{0,16}(?:过大|過大|超过|超過|超出|太大|上限|限制)"),
        strength=2,
    ),
    Sign(
        "field-text",
        "field_too_long",
        words(
            r"(?:string|value|array|list)(?: is)? too long|expected (?:a string|an array) with maximum length|expected maxlength",
            r"at most # (?:characters?|items?|elements?|entries)|(?:maximum|max) (?:of # |length (?:is|of) # )?(?:characters|items)",
            r"\bitems?\b[^.]{0,20}too long|is too long\. maximum length is",
        ),
        unless=words(WINDOW),
        strength=2,
    ),
    Sign(
        "field-items",
        "field_too_long",
        words(
            r"number of (?:messages|tools?|functions?|images?|documents?|items?|files?|choices|stop|blocks|properties)\b[^.]{0,30}(?:exceed"
            r"|greater|too many|must)",
            r"(?:exceed\w{0,6}|above)[^.]{0,30}number of (?:messages|tools|functions|images|documents|items)",
            r"per[- ](?:image|file|part|item|tool|message|document)\b|(?:条数|轮数|消息数|工具数|函数数)量?[^。]{0,8}(?:超|过多|上限|大于)",
            r"too many (?:tools?|functions?|images?|items?|documents?|stop|files?|inputs?\b(?! tokens))",
            r"max(?:imum)? (?:number of|#) (?:documents?|items?|tools?|functions?|images?|texts?|inputs?\b(?! tokens))",
        ),
        strength=2,
    ),
    Sign(
        "field-characters",
        "field_too_long",
        words(
            r"max(?:imum)? (?:input |prompt |number of )?(?:input )?characters|characters? (?:limit|count|length)[^.]{0,30}exceed",
            r"exceed\w{0,6}[^.]{0,30}characters|字符数?[^。]{0,8}(?:超过|超出|上限)|too many characters",
        ),
        unless=words(WINDOW),
        strength=2,
        shrink_helps=True,
    ),
    Sign(
        "field-name",
        "field_too_long",
        words(
            r"\b(?:names?|descriptions?|titles?|keys?)\b(?: (?:is|of|length|#)){0,3} exceeds? (?:the )?(?:limit|#)",
            rf"(?:\b|_){FIELD}\b(?: (?:is|are|was|of|in|for|the|length|value|provided)){{0,4}} (?:too long|longer than|exceeds? (?:the )?max)",
        ),
        strength=2,
    ),
    Sign(
        "bytes",
        "field_too_long",
        words(
            r"(?:#|\d) ?(?:bytes|kb|mb|mib|kib|gb)\b|payload|(?:body|entity)(?: is| size)? (?:too large|exceed)|body size|content[ -]length",
            r"total text bytes",
            r"request exceeds the maximum size|request (?:size|is) (?:exceeds|too large)"
            r"|request too large|request_too_large|maximum request size|batch size",
        ),
        nowhere=_ABOUT_TOKENS,
        strength=2,
        shrink_helps=True,
    ),
    Sign(
        "no-endpoint",
        "other",
        words(r"no (?:endpoints?|providers?|allowed providers|available channels?)[^.]{0,20}(?:found|available|support)"),
        strength=2,
    ),
    Sign("context-too-small", "other", words(r"too small"), before=words(r"context|window"), after=words(r"minimum|least"), strength=2),
    Sign(
        "not-json",
        "other",
        words(
            r"(?:invalid|not valid|malformed|failed to parse|could not parse|unable to parse|cannot parse)[^.]{0,24} json",
            r"json[^.]{0,24}(?:invalid|malformed|pars|decod)|unexpected token|(?:failed to|unable to|could not|cannot) deserialize",
        ),
        strength=2,
    ),
    Sign(
        "auth",
        "other",
        words(
            r"api[ _-]?key|unauthori[sz]ed|authenticat|forbidden|permission|access denied|not authorized|invalid[ _]token",
            r"token (?:is |has )?(?:invalid|expired)|expired token|credentials",
        ),
    ),
    Sign(
        "model-unknown",
        "other",
        words(
            r"(?:\b(?:model|deployment|engine|endpoint|tool|function|method|url|path)\b|模型)[^.]{0,80}"
            r"(?:not found|do(?:es)? not exist|not exist|no such|unknown|invalid|not supported|unsupported|not available|不存在|无效)",
            r"(?:invalid|unknown|unsupported|no such) (?:model|deployment|engine|endpoint|url)\b",
        ),
    ),
    Sign(
        "parameter-unknown",
        "other",
        words(
            r"(?:unknown|unrecognized|unrecognised|unsupported|unexpected|extra|missing|additional) (?:request )?(?:required )?"
            r"(?:parameter|argument|field|input|propert|value|keyword|key)",
            r"extra inputs are not permitted|invalid schema|is not of type|is not one of|input should be",
        ),
    ),
    Sign(
        "overload",
        "other",
        words(
            r"timed? ?out|timeout|deadline exceeded|overloaded|unavailable|temporarily (?:overloaded|reduced|down)|bad gateway"
            r"|upstream connect|healthy upstream",
            r"connection (?:refused|reset|error|closed)|server is busy|is loading|loading model|not loaded|out of memory|\boom\b",
            r"unexpectedly stopped|failed to load|more memory|enough memory",
        ),
    ),
)

CAPS = (
    Sign(
        "cap-higher-needed",
        "output_cap",
        words(r"max_tokens or model output limit was reached|(?:try again with|use a|increase) (?:a )?higher max"),
    ),
    Sign(
        "cap-output-maximum",
        "output_cap",
        words(
            r"maximum allowed number of output tokens|(?:maximum|max)(?: number of)? (?:output|completion) (?:tokens|length)",
            r"supports? at most # (?:completion|output)|(?:output|completion) tokens? (?:limit"
            r"|must|cannot|exceed)|maximum tokens you requested exceeds",
        ),
        unless=words(JOINT),
    ),
    Sign(
        "cap-parameter",
        "output_cap",
        words(
            r"too (?:large|high|big)|must be|should be|range|greater than|exceed\w{0,6}|less than|at most|not valid|invalid|above|> ?#|value of",
            r"out of range|larger than|<= ?#|no more than|超过|超出|应小于|不能大于|范围",
        ),
        before=words(rf"{OUTPUT}[^+]{{0,70}}$"),
        unless=words(JOINT, r"(?:got|received) -"),
    ),
)
"""Complaints of the output asked for alone: a smaller prompt changes nothing."""

FIELD_CODES = (
    Sign("code-characters", "field_too_long", words(r"characterstoolong"), shrink_helps=True),
    Sign("code-field", "field_too_long", words(r"abovemaxlength|stringtoolong")),
    Sign("code-bytes", "field_too_long", words(r"requesttoolarge|payloadtoolarge|requestentitytoolarge"), shrink_helps=True),
)
"""Codes of an error object, read without blanks and marks."""

STATUS_CODES = (
    (words(r"ratelimit|resourceexhausted|toomanyrequests|throttl|quota"), 429),
    (words(r"overloaded|unavailable"), 503),
    (words(r"authentication|apikey|permission|unauthorized|forbidden"), 401),
    (words(r"insufficientcredit|billing|payment"), 402),
    (words(r"timeout"), 504),
)
"""HTTP statuses that codes in words stand for."""

SHRINKABLE_FIELD = re.compile(r"invalid (?:messages?|input|prompt|contents?)\b|\$[._]messages|malformed input request")
"""A field whose length the conversation decides."""

TPM = re.compile(r"limit:? #(?:, used:? (?P<used>#))?,? ?requested:? (?P<requested>#)")
"""OpenAI's and Groq's figures of a limit per minute."""
