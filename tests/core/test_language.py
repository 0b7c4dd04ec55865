"""`language_of`: the language that user and assistant write, whatever their tools print."""

from __future__ import annotations

import pytest

from ctxproxy.core.language import han_share, language_of
from tests.core.histories import assistant, result, user

ENGLISH = "Please look at the log and tell me why the build fails."
CHINESE = "请看一下日志，告诉我为什么构建失败。"


@pytest.mark.parametrize(
    ("messages", "language"),
    [
        ([], "en"),
        ([user(ENGLISH), assistant("It needs a newer compiler.")], "en"),
        ([user(CHINESE), assistant("需要更新编译器。")], "zh"),
        ([user(CHINESE), result("c", ENGLISH * 200)], "zh"),
        ([user(ENGLISH), result("c", CHINESE * 200)], "en"),
        ([user(CHINESE + "\n```\n" + "def f(): return None\n" * 200 + "```\n为什么？")], "zh"),
        ([user("帮我看看这个报错：\n" + (ENGLISH + "\n") * 200 + "done")], "zh"),
        ([user("How do I say thank you? 谢谢 or 多谢?"), assistant("Both are fine, 谢谢 is more common.")], "en"),
        ([user("ログを見て、なぜビルドが失敗するのか教えてください。"), assistant("新しいコンパイラが必要です。")], "en"),
    ],
    ids=[
        "nothing",
        "english",
        "chinese",
        "tools do not count",
        "tools do not count in english",
        "code does not count",
        "a pasted log",
        "about chinese",
        "japanese",
    ],
)
def test_the_language_is_that_of_the_people(messages: list, language: str) -> None:
    assert language_of(messages) == language


@pytest.mark.parametrize(("text", "low", "high"), [("", 0, 0), (ENGLISH, 0, 0), (CHINESE, 0.8, 1), ("订单 A-101 的 status 是 shipped", 0.4, 0.8)])
def test_the_share_of_chinese_is_one_of_words(text: str, low: float, high: float) -> None:
    assert low <= han_share(text) <= high
