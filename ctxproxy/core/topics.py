"""What a sentence is about: its content words, by which two rules are told to be the same, or the same with another value."""

from __future__ import annotations

import re
from typing import NamedTuple

WORD = re.compile(r"\d[\d,.]*(?=-[a-z])|[a-z0-9](?:[a-z0-9_.,:/@'’+-]*[a-z0-9])?")
"""Names and paths are one word: two that share a part are not the same thing."""
HAN_RUN = re.compile("[\u3400-\u9fff]+")
EMPTY_WORDS = """
a an the and or but if then so of to in on at by for with from as is are was were be been it its it's this that these those i you he she we
they me my your our their do does did don't don’t have has had will would can can't cannot could should may might must not no never always
only please all any every each now again anymore longer more than most least about what said say says told tell forget ignore disregard drop
scrap cancel lift remove skip void revoke withdraw rule rules requirement requirements restriction restrictions constraint constraints
instruction instructions use using used make sure ensure avoid need needs allowed forbidden required let us i'd i'm want ever just also keep
there here which who when where stay still earlier previous before ago instead change changed switch new raise raised increase increased
lower lowered reduce reduced up down set off after under over below within max maximum minimum going forward actually applies apply no-one
rather way well really very it’s
"""
EMPTY = frozenset(EMPTY_WORDS.split())
EMPTY_HAN = re.compile(
    "必须|务必|一定要?|不要|不能|不得|不可以?|不许|不准|禁止|严禁|切勿|请勿|只能|只可以?|只用|仅限|从现在起|从现在开始|从今以后|以后|今后|现在|可以|不用再?|不必再?|不再|需要|无需"
    "|取消|废除|撤销|解除|去掉|忘掉|忘了|忽略|作废|失效|关于|规则|要求|规定|约束|限制|之前|以前|前面|刚才|说的|说过|那条|这条|请你?|改成|改为|改用|换成|调整为|调整到|提高到|增加到|降到|降低到"
    "|放宽到|所有|一律|都|再|了|的|我|你|是|在|把|将|就|也|得|要|用|使用|别|吧|啊|呢|每次|始终|永远|绝不|绝对|不|超过|最多|至少|元|块"
)
LANGUAGES = frozenset(
    [
        "english",
        "german",
        "french",
        "spanish",
        "italian",
        "chinese",
        "japanese",
        "korean",
        "portuguese",
        "russian",
        "dutch",
        "polish",
        "turkish",
        "arabic",
        "hindi",
        "mandarin",
    ]
)
LANGUAGES_HAN = re.compile("中文|英文|英语|汉语|德语|德文|法语|法文|日语|日文|韩语|韩文|西班牙语|俄语|普通话|繁体中文|简体中文")
DAYS = frozenset(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "today", "tomorrow", "tonight"])
NUMBER_HAN = re.compile("[一二两三四五六七八九十百千万]+(?=元|块|天|个|人|字|行|条|分钟|小时|万|千|次|页|$)")
LENGTH_HAN = re.compile(r"[\d百千]\s?字|字数")
QUANTITIES = frozenset(("budget", "limit", "deadline", "预算", "上限", "期限", "截止"))
"""One word that says which rule is meant."""
NEGATIVE = re.compile(r"\b(?:never|no|not|avoid|only|forbidden|prohibited|without|taboo)\b|n['’]t\b|不|禁|勿|别|只|仅|避免")


class Topic(NamedTuple):
    """What a sentence is about: all its content words, and these with values (numbers, languages, days) levelled."""

    words: frozenset[str]
    level: frozenset[str]
    values: frozenset[str]
    negative: bool
    order: tuple[str, ...] = ()
    """The words as they follow one another."""


def topic(sentence: str) -> Topic:
    """The content words of a sentence, English ones stemmed roughly, Chinese ones as pairs of characters."""
    low = sentence.lower()
    order = [_stem(word) for word in WORD.findall(low) if word not in EMPTY]
    words = set(order)
    values = {word for word in words if word[0].isdigit() or word in LANGUAGES or word in DAYS}
    level = {_class_of(word) for word in words}
    if not low.isascii():
        found = set(LANGUAGES_HAN.findall(low)) | set(NUMBER_HAN.findall(low))
        rest = NUMBER_HAN.sub(" ", LANGUAGES_HAN.sub(" ", low))
        in_order = [pair for run in HAN_RUN.findall(EMPTY_HAN.sub(" ", rest)) for pair in _pairs(run)]
        order += in_order
        pairs = set(in_order)
        quantities = {word for word in QUANTITIES if word in low} | ({"字数"} if LENGTH_HAN.search(low) else set())
        words |= found | pairs | quantities
        values |= found
        level |= {"<language>" if LANGUAGES_HAN.fullmatch(one) else "<number>" for one in found} | pairs | quantities
    return Topic(frozenset(words), frozenset(level), frozenset(values), NEGATIVE.search(low) is not None, tuple(order))


def _stem(word: str) -> str:
    if word[0].isdigit() or len(word) < 4:
        return word.replace(",", "")
    for end in ("'s", "’s", "ing", "ies", "es", "ed", "s"):
        if word.endswith(end) and len(word) - len(end) >= 3 and not word.endswith("ss"):
            return word[: -len(end)]
    return word.removesuffix("e")


def _class_of(word: str) -> str:
    if word[0].isdigit():
        return "<number>"
    return "<language>" if word in LANGUAGES else "<day>" if word in DAYS else word


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] if len(run) > 1 else [run]
