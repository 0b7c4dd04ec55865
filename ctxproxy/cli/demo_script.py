"""What is said in `ctxproxy demo`: a project chat in English or Chinese, with facts planted early and asked for at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

Lang: TypeAlias = Literal["en", "zh"]


class Fact(NamedTuple):
    """A sentence that is said once, the question for it, and what a right answer holds."""

    said: str
    asked: str
    value: str


FACTS: Mapping[Lang, tuple[Fact, ...]] = MappingProxyType(
    {
        "en": (
            Fact("The project is called Halcyon and it ships on March 14.", "When does the project Halcyon ship?", "March 14"),
            Fact("The budget of the migration is 48,500 euros, never go over it.", "What is the budget of the migration?", "48,500"),
            Fact("The staging database listens on db-stage-7.internal:5433.", "Where does the staging database listen?", "db-stage-7.internal:5433"),
            Fact("Ingrid Solheim owns the billing module.", "Who owns the billing module?", "Ingrid Solheim"),
            Fact("Python 3.11 must stay the oldest supported version.", "Which oldest Python version must stay supported?", "3.11"),
            Fact("The incident of last week has the number INC-20418.", "Which number has the incident of last week?", "INC-20418"),
            Fact("The release branch is rel/2.7-lts.", "What is the release branch?", "rel/2.7-lts"),
            Fact("Customer exports must be encrypted with key K-11-violet.", "Which key must customer exports be encrypted with?", "K-11-violet"),
        ),
        "zh": (
            Fact("项目名称是海燕，上线日期是3月14日。", "海燕项目的上线日期是哪天？", "3月14日"),
            Fact("迁移预算是48500元，绝对不能超过。", "迁移预算是多少？", "48500"),
            Fact("预发布数据库的地址是 db-stage-7.internal:5433。", "预发布数据库的地址是什么？", "db-stage-7.internal:5433"),
            Fact("计费模块由林若溪负责。", "计费模块由谁负责？", "林若溪"),
            Fact("最低支持的版本必须保持 Python 3.11。", "最低支持的版本必须是什么？", "3.11"),
            Fact("上周的故障编号是 INC-20418。", "上周的故障编号是什么？", "INC-20418"),
            Fact("发布分支是 rel/2.7-lts。", "发布分支是什么？", "rel/2.7-lts"),
            Fact("客户导出文件必须用密钥 K-11-violet 加密。", "客户导出文件必须用什么密钥加密？", "K-11-violet"),
        ),
    }
)

SYSTEM: Mapping[Lang, str] = MappingProxyType({"en": "You help with a software project. Answer briefly.", "zh": "你协助一个软件项目。请简短回答。"})

_REMEMBER: Mapping[Lang, str] = MappingProxyType({"en": "Please remember this for the whole project: {}", "zh": "请在整个项目中记住：{}"})
_ASK_FILE: Mapping[Lang, str] = MappingProxyType({"en": 'Use read_file on "{}", please.', "zh": "请用 read_file 看一下“{}”。"})
_ASK_LOGS: Mapping[Lang, str] = MappingProxyType({"en": 'Now search_logs for "{}".', "zh": "现在用 search_logs 查“{}”。"})
_ASK_TESTS: Mapping[Lang, str] = MappingProxyType(
    {"en": 'Use run_tests for "{}" and tell me what fails.', "zh": "用 run_tests 跑“{}”，告诉我什么失败了。"}
)
_NOTES: Mapping[Lang, tuple[str, ...]] = MappingProxyType(
    {
        "en": (
            "In step {n} I moved the invoice rounding into its own function, and reviewed the callers one by one. Nothing else changed there.",
            "The review of step {n} went well. The team wants smaller commits and more tests around the retry loop before we go on.",
            "For step {n} I looked at three ways to cache the exchange rates, and took the simplest one: a table with a time to live of one hour.",
            "Step {n} took longer than planned, because the fixture data were stale. I made them anew and wrote down how.",
        ),
        "zh": (
            "第 {n} 步我把发票取整移到了单独的函数里，并逐个检查了调用方，其他地方没有改动。",
            "第 {n} 步的评审很顺利，团队希望提交更小一些，继续之前先给重试循环补上测试。",
            "第 {n} 步我比较了三种缓存汇率的办法，选了最简单的一种：一张有效期一小时的表。",
            "第 {n} 步花的时间比计划长，因为测试数据过期了，我重新生成了一份并写下了做法。",
        ),
    }
)
_FILES = ("src/billing/invoice.py", "src/billing/rates.py", "src/export/writer.py", "src/api/retry.py", "config/staging.toml")
_QUERIES = ("timeout", "rounding", "retry", "export", "connection reset")

TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
        },
    }
    for name, description, key in (
        ("read_file", "The text of a source file.", "path"),
        ("search_logs", "The log lines that hold a word.", "query"),
        ("run_tests", "Runs the tests below a path.", "path"),
    )
)


def turns(lang: Lang, count: int) -> Iterator[str]:
    """The user's texts: facts first, two a turn, then work."""
    facts = FACTS[lang]
    planted = [" ".join(fact.said for fact in facts[at : at + 2]) for at in range(0, len(facts), 2)]
    for number in range(count):
        yield _REMEMBER[lang].format(planted[number]) if number < len(planted) else _work(lang, number)


def _work(lang: Lang, number: int) -> str:
    match number % 4:
        case 0:
            return _ASK_FILE[lang].format(_FILES[number // 4 % len(_FILES)])
        case 2:
            return _ASK_LOGS[lang].format(_QUERIES[number // 4 % len(_QUERIES)])
        case 3 if number % 8 == 7:
            return _ASK_TESTS[lang].format("tests/" + _FILES[number // 8 % len(_FILES)].split("/")[1])
    notes = _NOTES[lang]
    return notes[number // 2 % len(notes)].format(n=number + 1)


def result_of(name: str, arguments: str, number: int) -> str:
    """What a tool gives back: as long and as dull as such results are."""
    value = next(iter(json.loads(arguments).values()), "")
    if name == "read_file":
        lines = [f"def step_{i}(amount: int, rate: float) -> int:\n    return round(amount * rate) + {i * number % 97}\n" for i in range(24)]
        return f"# {value}\n" + "\n".join(lines)
    if name == "search_logs":
        lines = [f"2026-02-{1 + i % 27:02} 12:{i % 60:02}:07 WARN worker-{i % 5} {value} after {i * 37 % 900} ms, attempt {i % 3}" for i in range(40)]
        return "\n".join(lines)
    lines = [f"{value}::test_case_{i} PASSED" for i in range(30)]
    lines[number % 30] = f"{value}::test_case_{number % 30} FAILED: expected {number}, got {number + 1}"
    return "\n".join(lines)
