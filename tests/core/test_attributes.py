"""What a sentence says things are, in English and Chinese."""

from __future__ import annotations

import pytest

from ctxproxy.core.attributes import Attribute, attributes


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The budget is 4,500 €.", [("number", "budget", "4,500 €")]),
        ("budget: 4500", [("number", "budget", "4500")]),
        ("budget = $4,500 and the deadline is Friday", [("number", "budget", "$4,500"), ("date", "deadline", "Friday")]),
        ("Our budget was raised to 5,000 €", [("number", "budget", "5,000 €")]),
        ("We need a budget of 300 dollars", [("number", "budget", "300 dollars")]),
        ("The budget for the hotel is 900 €", [("number", "budget for the hotel", "900 €")]),
        ("The response time must be under 100 ms", [("number", "response time", "100 ms")]),
        ("the port is 8080 now", [("number", "port", "8080")]),
        ("Set the timeout to 30 s", [("number", "timeout", "30 s")]),
        ("All of the hotels is 90 €", [("number", "hotels", "90 €")]),
        ("I have a meeting at 10:30", [("date", "meeting", "10:30")]),
        ("The launch is on 2026-03-05", [("date", "launch", "2026-03-05")]),
        ("The meeting is on March 5", [("date", "meeting", "March 5")]),
        ("my name is ann", [("entity", "name", "ann")]),
        ("My name is Ann Lee and I work at Siemens.", [("entity", "name", "Ann Lee"), ("entity", "employer", "Siemens")]),
        ("I live in Berlin. It is cold.", [("place", "home", "Berlin")]),
        ("I'm allergic to peanuts and shellfish", [("entity", "allergy", "peanuts and shellfish")]),
        ("My favorite color is dark green", [("preference", "favorite color", "dark green")]),
        ("My dog is called Rex", [("entity", "dog", "Rex")]),
        ("my wife’s name is Mia", [("entity", "wife's name", "Mia")]),
        ("my phone number is 555-1234", [("entity", "phone number", "555-1234")]),
        ("我叫老王，预算4500元", [("entity", "name", "老王"), ("number", "预算", "4500元")]),
        ("请叫我小李就行", [("entity", "name", "小李")]),
        ("预算改成三千元", [("number", "预算", "三千元")]),
        ("我们的总预算不超过1.2万元", [("number", "总预算", "1.2万元")]),
        ("这次去云南的酒店预算大概3000元", [("number", "酒店预算", "3000元")]),
        ("它的开放时间是8:30", [("date", "开放时间", "8:30")]),
        ("会议改到下周三", [("date", "会议", "下周三")]),
        ("截止日期是3月5日", [("date", "截止日期", "3月5日")]),
        ("服务器端口为8080", [("number", "服务器端口", "8080")]),
        ("我住在上海浦东，在腾讯上班", [("place", "住址", "上海浦东")]),
        ("我对花生过敏。", [("entity", "过敏", "花生")]),
        ("我的邮箱是a@b.com", [("entity", "邮箱", "a@b.com")]),
        ("我最喜欢的颜色是墨绿", [("preference", "喜欢的颜色", "墨绿")]),
    ],
)
def test_a_thing_and_its_value_are_found(sentence: str, expected: list[tuple[str, str, str]]) -> None:
    assert attributes(sentence) == [Attribute(*one) for one in expected]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sentence",
    [
        "Is the budget 4,500 €?",
        "预算是4500元吗",
        "If the budget is 300 €, we stay at home",
        "如果预算是300元，就不去了",
        "There are 5 users",
        "It costs 40 €",
        "I have 3 cats",
        "Answer in at most 100 words",
        "The of is 5",
        "of the is 5",
        "My city is not known",
        "my code is broken",
        "我叫他去买菜",
        "我买了3个苹果",
        "我在3点到",
        "去年比较贵的大别墅房子很多是5套",
        "Nothing here says anything",
        "an is 5",
        "The class with them is on Friday",
        "call me out at 5",
        "my phone is slow",
        "帮我叫下出租车，我叫下车",
        "我在考虑换一份工作",
        "他是1990年出生的",
        "今天是星期五",
    ],
)
def test_a_question_a_supposition_and_a_number_without_a_name_give_nothing(sentence: str) -> None:
    assert attributes(sentence) == []
