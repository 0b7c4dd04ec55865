"""The words by which a sentence ties a thing to its value, and the sentences in which people tell who they are."""

from __future__ import annotations

import re

from ctxproxy.core.facts import AMOUNT, DATE
from ctxproxy.core.points import PointKind

DAYS = r"(?:next |this )?(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|tomorrow\b"
DAYS_HAN = "(?:下|本|这)?(?:周|星期|礼拜)[一二三四五六日天]|明天|后天"
CLOCK = r"(?<![\d:])\d{1,2}:\d{2}(?:\s?[ap]m\b)?|(?<![\d.])\d{1,2}\s?[ap]m\b"
ISO = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:T[\d:.+Z-]+)?"
UNITS_HAN = (
    "(?:万元|亿元|元|块钱?|人|个人|个|天|小时|分钟|秒|周|年|个?月|公里|千米|平方米|平米|米|公斤|斤|岁|次|条|件|台|张|份|页|行|度|折|字|名|位|晚)"
)
NUMBER = rf"(?<![A-Za-z0-9_.])\d(?:[\d,.]*\d)?(?:\s?(?:[€$£¥￥%]|{UNITS_HAN})|(?:\s|-)?[A-Za-z]+\b)?"
NUMBER_HAN = f"[一二两三四五六七八九十百千万]+{UNITS_HAN}"
_DATES = f"{DATE.pattern}|{ISO}|{CLOCK}|{DAYS}|{DAYS_HAN}"
VALUE = re.compile(f"{_DATES}|{AMOUNT.pattern}|{NUMBER}|{NUMBER_HAN}", re.IGNORECASE)
DAY_CUES = ("day", "tomorrow")
HAN_VALUE = re.compile("周|星期|礼拜|明天|后天|[一二两三四五六七八九十百千万]")
"""What holds none of these, and no digit, holds no value."""
IS_DATE = re.compile(f"(?:{_DATES})", re.IGNORECASE)

COPULA_WORDS = """
is are was were be been equals equal costs cost remains stays : = raised lowered increased reduced moved changed set extended
"""
LINK_WORDS = """
to of at on by in from under over below above about around approximately roughly exactly only still now currently max maximum min minimum
most least than more less up within between must should can may will would has have not exceed fixed cut already just
"""
COPULAS = frozenset(COPULA_WORDS.split())
LINKS = COPULAS | frozenset(LINK_WORDS.split())
"""What may stand between a name and its value."""
PLACING = frozenset(("at", "on", "by", "for", "from"))
PRONOUNS = frozenset(("them", "him", "us", "one", "who"))
DETERMINERS = frozenset(["the", "my", "our", "a", "an", "this", "his", "her", "their", "your", "its"])
JOINTS = frozenset(("for", "of", "per"))
"""What may stand inside a name."""

LINKS_HAN = re.compile(
    "(?:不能超过|不要超过|不得超过|不可以超过|不超过|别超过|最多|最高|最低|最少|至少|至多|控制在|限制在|调整为|调整到|提高到|增加到|降低到|降到|涨到|减到|推迟到|提前到|延长到"
    "|改成|改为|改到|改在|换成|定为|定在|设为|设成|等于|一共|总共|大概|大约|差不多|左右|就是|已经|现在|目前|仍然|还是|只有|应该|可以|必须|需要|约|是|为|共|在|到|有|：|:|=)$"
)
WEAK_LINKS_HAN = frozenset(("在", "有", "到", "共", "需要", "可以", "应该", "现在", "目前", "已经", "只有"))
"""They tie nothing by themselves: "我买了3个", "我有3个"."""
BEFORE_HAN = re.compile(
    "^(?:那么?|另外|还有|其中|这次|本次|此次|现在|目前|以后|今后|从现在起|请?把|请?将|我们的|我们|咱们的?|我的|我|你的|您的|他的|她的|它的|可以|然后|最好|通常|一般|而|希望|有没有|但是?|不过|打算|分以上的?|要|这个|那个|的)+"
)
HAN_NOUN = re.compile(
    "(?:总|月|年|日|单|每月|每天|每年|每人|旅行|酒店|住宿|交通|餐饮|项目|营销|广告)?"
    "(?:预算|价格|价|金额|费用|成本|人数|数量|房租|租金|工资|薪水|月薪|年薪|年龄|身高|体重|期限|截止日期|截止时间|截止|上限|下限|面积|时长|端口号?|版本号?|订单号|编号|工号|学号|会员号"
    "|电话|手机号?|房间号|生日|日期|时间|字数|长度|温度|利率|折扣|首付)$"
)
"""Right before a number it needs no word between."""
UNFIT_HAN = re.compile(
    "[了过着去来想买吃看听说给让请问做写个和与跟被]|知道|记得|记错|推荐|帮我|^(?:.|他们|她们|它们|今天|明天|昨天|今年|去年|那年|当时|那时|大家|自己|都)$"
)
HYPOTHETICAL = re.compile(
    r"\W*(?:if|suppose|assuming|assume|imagine|unless|what if|when|say|let['’]s say|for example|e\.g)\b"
    r"|\W*(?:如果|假如|假设|要是|万一|比如|例如|倘若)"
)
NO_VALUE = re.compile(
    r"(?:not|that|how|why|what|where|when|whether|so|very|too|quite|a bit|a little|being|going|getting|about|unclear|unknown|wrong|broken|slow|ok"
    r"|okay|fine|good|bad|great|here|there|it|this|these|those|always|never|in|on|at|to|the same)\b|[他她你它人了不没什哪谁怎]|这|那"
)
"""What begins so says how something is, not what."""

_WORD = r"[\w'’.+@-]+"
_NAME = rf"{_WORD}(?: [A-Z]{_WORD}){{0,2}}"
_REST = r"[^,;!?，。；！？\n]{1,80}"
_NO_HAN_NAME = "[他她你它人了不我大过来去车个醒什啥下一辆]"
_HAN_NAME = "[\u3400-\u9fff·]{1,6}?(?=[了吧啊呀哦，。！？,.!?、\\s]|就[行好]|即可|$)|[A-Z][A-Za-z]{1,20}(?: [A-Z][A-Za-z]{1,20})?"
_RELATIVES = r"(?:wife|husband|partner|son|daughter|mother|father|brother|sister|boss|manager|dog|cat|pet|team|company|project|startup)"
_NOUNS = (
    r"full name|first name|last name|surname|nickname|e-?mail(?: address)?|phone number|address|city|home ?town|country|birthday|date of birth"
    r"|job|profession|occupation|employer|role|time ?zone|native language|mother tongue|user ?name|account(?: number| id)?|customer (?:id|number)"
    r"|order (?:id|number)|membership (?:id|number)|nationality|diet|blood type|shoe size|license plate"
)


def _row(pattern: str, kind: PointKind, key: str = "", *, exact_case: bool = False) -> tuple[re.Pattern[str], PointKind, str]:
    return re.compile(pattern, re.NOFLAG if exact_case else re.IGNORECASE), kind, key


OWN = (
    _row(
        rf"(?<!\w)(?:[Mm]y name(?: is|['’]s)|I(?: am|['’]m) called|(?:[Pp]lease |[Jj]ust )?[Cc]all me(?= [A-Z])) (?P<v>{_NAME})",
        "entity",
        "name",
        exact_case=True,
    ),
    _row(rf"\bmy (?P<k>{_NOUNS}) (?:is|was|=) (?:now )?(?P<v>{_REST})", "entity"),
    _row(rf"\bmy (?P<k>{_RELATIVES}) is (?:called|named) (?P<v>{_REST})", "entity"),
    _row(rf"\bmy (?P<k>{_RELATIVES}['’]s name) is (?P<v>{_REST})", "entity"),
    _row(rf"\bmy (?P<k>(?:favou?rite|preferred) \w+(?: \w+)?) (?:is|are) (?P<v>{_REST})", "preference"),
    _row(rf"\bI(?: live in| moved to|(?:['’]m| am) based in) (?P<v>{_REST})", "place", "home"),
    _row(rf"\bI(?: work|['’]m working| am working) (?:at|for) (?P<v>{_REST})", "entity", "employer"),
    _row(rf"\bI(?: work|['’]m working| am working) as (?:an? )?(?P<v>{_REST})", "entity", "job"),
    _row(rf"\bI(?:['’]m| am) allergic to (?P<v>{_REST})", "entity", "allergy"),
    _row(r"\bI(?:['’]m| am) (?:an? )?(?P<v>vegetarian|vegan|pescatarian|lactose intolerant|diabetic)\b", "entity", "diet"),
    _row(
        f"(?:我(?:的名字)?(?:名叫|叫做?)|(?:请|以后|可以|就)叫我|我的(?:名字|姓名)(?:是|叫|为))(?!{_NO_HAN_NAME})(?P<v>{_HAN_NAME})", "entity", "name"
    ),
    _row(f"我(?:现在|目前)?(?:住在|家在|定居在)(?P<v>{_REST})", "place", "住址"),
    _row("我(?:现在|目前)?在(?P<v>[^,，。；;！？?!在的想考虑找做忙要换学着了]{2,20}?)(?:工作|上班|任职)", "entity", "工作单位"),
    _row("我对(?P<v>[^,，。；;！？?!]{1,12}?)过敏", "entity", "过敏"),
    _row(
        f"我的(?P<k>邮箱|电话|手机号?|微信号?|生日|职业|公司|城市|地址|国籍|会员号|工号|学号|订单号|账号|专业)(?:是|为|：|:)(?P<v>{_REST})", "entity"
    ),
    _row(f"我最(?P<k>喜欢的[\u3400-\u9fff]{{1,6}}?)(?:是|为)(?P<v>{_REST})", "preference"),
)
"""Sentence, kind, key where the sentence does not name it as `k`."""
OWN_CUES = ("my ", "i live", "i moved", "i work", "i am", "i'm", "i’m", "call me", "我")
"""One of these is in each of them."""
