"""A user message that begins with what stands for earlier turns."""

from __future__ import annotations

import pytest

from ctxproxy.core.frames import Background, parse
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.openings import opened, parted
from tests.core.histories import assistant, user

BACKGROUND = Background("They chose SQLite.\nPort 8787 is open.", rules=("Never use tabs.",))


def test_the_summary_stands_first_under_the_number_of_turns_and_the_message_follows_as_it_was() -> None:
    assert text_of(opened(user("And now?\n- a"), BACKGROUND, 10, "en")) == (
        "[Background: 10 earlier turns in short, not a new request]\n"
        "They chose SQLite.\nPort 8787 is open.\n"
        "Rules and limits in force, word for word:\n- Never use tabs.\n"
        "[End of the background; the message itself:]\n\n"
        "And now?\n- a"
    )


def test_parts_follow_as_they_were_and_so_do_other_fields_and_directives() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "https://a.invalid/b.png"}}, {"type": "text", "text": "this?"}]
    message = opened(user(parts, Directives(drop_first=True), name="ann"), BACKGROUND, 1, "en")
    assert message.content[1:] == parts
    assert message.content[0]["text"].startswith("[Background: 1 earlier turns")
    assert (message.fields["name"], message.directives.drop_first) == ("ann", True)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("content", ["And now?", "\n\n  blanks ", "", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]])
def test_it_comes_apart_again_into_a_frame_and_the_message(content: object, language: Language) -> None:
    frame, message = parted(opened(user(content), BACKGROUND, 123, language))
    assert parse(text_of(frame)) == BACKGROUND
    assert message == user(content)


def test_a_message_without_content_gets_the_opening_alone() -> None:
    assert text_of(opened(user(None), BACKGROUND, 2, "en")).endswith("itself:]\n\n")


WHOLE = [
    user("And now?"),
    user("[End of the background; the message itself:]"),
    user("What is this:\n[Background: 3 earlier turns in short, not a new request]\n[End of the background; the message itself:]\n"),
    user("[Background: 3 earlier turns in short, not a new request]\nand no end"),
    assistant("[Background: 3 earlier turns in short, not a new request]\na\n[End of the background; the message itself:]\n\nb"),
]


@pytest.mark.parametrize("message", WHOLE)
def test_any_other_message_stays_whole(message: Message) -> None:
    assert parted(message) == [message]
