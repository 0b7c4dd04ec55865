"""What new messages change of what is remembered, and what of it a new session is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ctxproxy.core.frames import Background, frame_text
from ctxproxy.core.memory_points import REMARKED, Told, changes, in_force_for_user, is_statement, subject, user_block
from ctxproxy.core.messages import Message, Tip, identity, make, next_tip
from ctxproxy.core.points import MemoryPoint, Point, PointChanges
from ctxproxy.core.records import SessionKey

HERE, THERE = SessionKey("ab" * 16, "here"), SessionKey("ab" * 16, "there")


def count_words(text: str) -> int:
    return len(text.split())


class Talk:
    """A user's sessions, message by message, with what a store would hold of them."""

    def __init__(self) -> None:
        self.points: list[MemoryPoint] = []
        self.history: list[Message] = []
        self.tips: list[Tip] = []

    def say(self, *texts: str, session: SessionKey = HERE) -> PointChanges:
        """Texts of one request: the user's, but for those that begin with another role ("assistant: …")."""
        return self.store([made(text) for text in texts], session)

    def store(self, messages: Sequence[Message], session: SessionKey = HERE) -> PointChanges:
        said = [Told(tip, one, 0.0) for tip, one in zip(self.tips, self.history, strict=True) if one.role == "user"]
        before = said[-REMARKED:]
        fresh = []
        for message in messages:
            self.tips.append(next_tip(self.tips[-1] if self.tips else "", identity(message)))
            self.history.append(message)
            fresh.append(Told(self.tips[-1], message, float(len(self.history))))
        found = changes(fresh, before, [one for one in self.points if one.in_force], session)
        self._apply(found, session)
        return found

    def _apply(self, found: PointChanges, session: SessionKey) -> None:
        numbers = []
        for point in found.new:
            number = len(self.points) + 1
            numbers.append(number)
            same = [o for o in self.points if o.in_force and o.session == session and (o.point.kind, o.point.key) == (point.kind, point.key)]
            self.points = [replace(one, superseded_by=number) if one in same else one for one in self.points]
            self.points.append(MemoryPoint(number, point, session, "ann"))
        gone = {number: numbers[at] for number, at in found.replaced}
        self.points = [replace(one, superseded_by=gone[one.number]) if one.number in gone else one for one in self.points]
        self.points = [replace(one, taken_back=True) if (one.session, one.number) in found.taken_back else one for one in self.points]

    def held(self, session: SessionKey = HERE) -> set[str]:
        """`kind key=value` of all that is in force but anchors; sentences as they are."""
        return {shown(one.point) for one in self.points if one.in_force and one.session == session and one.point.kind != "anchor"}


def shown(point: Point) -> str:
    return f"{point.kind} {point.value}" if point.key == subject(point.value) else f"{point.kind} {point.key}={point.value}"


def made(text: str) -> Message:
    role, colon, said = text.partition(": ")
    return make({"role": role, "content": said} if colon and role in ("assistant", "tool", "system") else {"role": "user", "content": text})


def test_001_22_entities_numbers_decisions_and_preferences_are_kept_by_key() -> None:
    talk = Talk()
    talk.say("My name is Ann. The budget is 4,500 €. I prefer tabs over spaces.", "assistant: We decided to use PostgreSQL 16.")
    assert talk.held() == {
        "entity name=Ann",
        "number budget=4,500 €",
        "rule The budget is 4,500 €.",
        "preference I prefer tabs over spaces.",
        "decision We decided to use PostgreSQL 16.",
    }


def test_the_same_in_chinese() -> None:
    talk = Talk()
    talk.say("我叫老王，预算4500元。我对花生过敏。", "assistant: 好的，我们决定住在如家酒店。")
    expected = {"entity name=老王", "number 预算=4500元", "entity 过敏=花生", "preference 我对花生过敏。", "decision 好的，我们决定住在如家酒店。"}
    assert expected <= talk.held()


def test_the_newest_wins_and_the_history_stays() -> None:
    talk = Talk()
    talk.say("My name is Ann. The budget is 4,500 €. Always answer in English.")
    talk.say("Call me Annie. The budget is now 5,000 €. From now on answer in German.")
    assert talk.held() >= {"entity name=Annie", "number budget=5,000 €", "rule From now on answer in German."}
    assert not talk.held() & {"entity name=Ann", "number budget=4,500 €", "rule Always answer in English."}
    old = {shown(one.point): one for one in talk.points if not one.in_force}
    assert old.keys() >= {"entity name=Ann", "number budget=4,500 €", "rule Always answer in English."}
    assert all(one.superseded_by and not one.taken_back for one in old.values())


def test_what_the_user_takes_back_is_ended() -> None:
    talk = Talk()
    talk.say("The budget is 4,500 €. The deadline is Friday.")
    talk.say("Forget the budget limit.")
    assert talk.held() == {"date deadline=Friday", "rule The deadline is Friday."}
    ended = [one for one in talk.points if one.taken_back]
    assert {one.point.kind for one in ended} == {"number", "rule"}


def test_what_is_taken_back_in_the_same_breath_is_not_noted() -> None:
    talk = Talk()
    talk.say("The hotel budget is 4,500 €.", "Forget the hotel budget.", "The train is at 10:30.")
    assert talk.held() == {"date train=10:30"}


def test_where_it_is_not_clear_which_is_meant_all_stay() -> None:
    talk = Talk()
    talk.say("The train budget for monday is 50 €.", "The hotel budget for monday is 90 €.")
    talk.say("Forget the flight budget rule.")
    assert {"number train budget for monday=50 €", "number hotel budget for monday=90 €"} <= talk.held()


def test_a_message_that_matters_little_tells_nothing() -> None:
    talk = Talk()
    talk.say("My name is Ann.")
    talk.say("The code of the door is K-4711.")
    assert any(one.point.key == "K-4711" and one.in_force for one in talk.points)
    talk.say("That's not important.")
    assert not any(one.point.key == "K-4711" and one.in_force for one in talk.points)
    assert talk.held() == {"entity name=Ann"}
    talk.say("The gate is 12. Not important.")
    assert talk.held() == {"entity name=Ann"}


def test_what_the_user_wants_remembered_is_a_note() -> None:
    talk = Talk()
    talk.say("The wifi of the office is called Blue.")
    talk.say("Remember this.")
    assert talk.held() == {"note The wifi of the office is called Blue."}


def test_anchors_are_kept_once_with_their_kind_and_the_newest_mention() -> None:
    talk = Talk()
    found = talk.say("Look at src/app/main.py and order A-4711", "assistant: src/app/main.py is on https://x.org/a?b=1", "and src/app/main.py")
    anchors = {one.key: (one.value, one.tip) for one in found.new if one.kind == "anchor"}
    assert {key: kind for key, (kind, _) in anchors.items()} == {"src/app/main.py": "path", "A-4711": "id", "https://x.org/a?b=1": "url"}
    assert anchors["src/app/main.py"][1] == talk.tips[-1]


def test_003_55_an_exact_id_is_a_key_whoever_said_it() -> None:
    talk = Talk()
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"sku": "SKU-99812"}'}}
    talk.store([make({"role": "assistant", "content": None, "tool_calls": [call]}), made("tool: ticket TK-2201 is open")])
    assert {one.point.key for one in talk.points} == {"SKU-99812", "TK-2201"}
    assert talk.points[0].point.weight > talk.points[1].point.weight


def test_of_a_long_listing_few_anchors_are_kept() -> None:
    talk = Talk()
    listing = "\n".join(f"src/part{n}/file_{n}.py" for n in range(500))
    assert len(talk.say(f"tool: {listing}").new) == 15
    assert len(talk.say(listing).new) == 60


def test_a_long_paste_is_searched_for_anchors_and_read_at_its_ends_only() -> None:
    paste = "x" * 60 + " goes on here.\n"
    found = Talk().say(f"My name is Ann. {paste * 300} My name is Bob. See A-4711. {paste * 300} The budget is 5 €.")
    assert {(one.key, one.value) for one in found.new if one.kind != "rule"} == {("name", "Ann"), ("budget", "5 €"), ("A-4711", "id")}


def test_what_is_said_again_and_again_in_one_message_is_told_once() -> None:
    (point,) = Talk().say("The port is 8080. " * 50).new
    assert (point.key, point.value) == ("port", "8080")


def test_003_07_a_line_of_entities_action_and_goal_is_stored() -> None:
    talk = Talk()
    talk.say("[user|laptop][buy][video editing]")
    assert talk.held() == {"action user | laptop: buy=video editing"}


@pytest.mark.parametrize(
    "message",
    [
        made("system: The budget is 4,500 €. Look at src/app/main.py"),
        make({"role": "developer", "content": "The budget is 4,500 €."}),
        made(frame_text(Background("The budget is 4,500 €."), "en")),
        made("assistant: Understood. The background is noted."),
    ],
)
def test_system_messages_and_our_own_frames_tell_nothing(message: Message) -> None:
    assert not Talk().store([message])


def test_logs_and_code_tell_nothing_but_their_anchors() -> None:
    found = Talk().say("2026-01-01 10:00:00 the budget is 4,500 €\n```\nname = 'x'\nthe limit is 20\n```")
    assert {one.kind for one in found.new} <= {"anchor"}


def test_words_of_another_session_are_ended_when_they_are_taken_back_and_stay_when_they_are_changed() -> None:
    talk = Talk()
    talk.say("Never use tabs.", "Always answer in English.", session=THERE)
    found = talk.say("From now on answer in German.")
    assert (found.replaced, found.taken_back) == ((), ())
    assert talk.held(THERE) == {"rule Never use tabs.", "rule Always answer in English."}
    assert [one.point.value for one in in_force_for_user(talk.points)] == ["From now on answer in German.", "Never use tabs."]
    talk.say("Forget the rule about tabs.")
    assert talk.held(THERE) == {"rule Always answer in English."}


def test_rules_that_contradict_each_other_across_sessions_are_not_ended_by_an_unrelated_message() -> None:
    talk = Talk()
    talk.say("Always answer in English.", session=THERE)
    talk.say("From now on answer in German.")
    assert not talk.say("The weather is nice").taken_back


def test_a_favorite_with_its_value_is_no_sentence() -> None:
    talk = Talk()
    (point,) = talk.say("My favorite color is green").new
    assert point.kind == "preference"
    assert not is_statement(point)
    talk.say("Nothing new")
    assert talk.held() == {"preference favorite color=green"}


def test_keys_of_sentences_are_their_first_words_of_weight() -> None:
    assert subject("Please always answer in English, in short paragraphs of plain words") == "answer english short paragraphs plain words"
    assert subject("以后请始终用中文回答") == "中文回答"
    assert subject("It is so!") == "it is so!"


def point(kind: str, key: str, value: str, time: float = 1.0, weight: float = 3.0, **more: object) -> MemoryPoint:
    return MemoryPoint(int(time), Point(kind, key, value, "aa", time, weight), HERE, "ann", **more)  # type: ignore[arg-type]


KNOWN = [
    point("entity", "name", "Ann", 1),
    point("entity", "name", "Annie", 2),
    point("number", "budget", "5,000 €", 3),
    point("rule", subject("Always answer in German."), "Always answer in German.", 4),
    point("rule", subject("Use only the file a.txt."), "Use only the file a.txt.", 5),
    point("preference", "favorite color", "green", 6),
    point("preference", subject("I prefer a budget of 7 €."), "I prefer a budget of 7 €.", 7),
    point("number", "small budget", "7 €", 8),
    point("decision", subject("We agreed on blue."), "We agreed on blue.", 9),
    point("anchor", "A-4711", "id", 10, 1.5),
    point("anchor", "b.txt", "path", 11, 0.3),
    point("place", "home", "Berlin", 12, taken_back=True),
]


def test_a_new_session_is_told_who_the_user_is_what_he_prefers_and_what_lasts() -> None:
    assert user_block(KNOWN, 200, count_words, "en").splitlines() == [
        "Said by this user in earlier conversations:",
        "- name: Annie",
        "- I prefer a budget of 7 €.",
        "- favorite color: green",
        "- Always answer in German.",
        "- budget: 5,000 €",
        "- We agreed on blue.",
        "- names, paths, links: A-4711",
    ]


def test_it_is_bounded_and_nothing_where_nothing_fits_or_is_known() -> None:
    block = user_block(KNOWN, 15, count_words, "zh")
    assert block.splitlines() == ["该用户在此前对话中说过：", "- name: Annie", "- favorite color: green"]
    assert user_block(KNOWN, 5, count_words, "en") == ""
    assert user_block([], 100, count_words, "en") == ""
