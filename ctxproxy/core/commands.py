"""Commands in a user message (INTERFACE.md §4): which one a message is, and where commands with their answers stand in a history.

A client that resends its history brings our answers back to us. They are told by their first word, so every replica knows them, also
after a restart, and no conversation is another one for a command that was given in it. Must not know what a command does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from msgspec import structs

from ctxproxy.core.messages import SYSTEM_ROLES, Message, text_of
from ctxproxy.core.wire import ChatRequest

MARK = "[ctxproxy]"
"""What every answer of ours begins with. Nothing in it is written in another way by any encoder of JSON."""


@dataclass(frozen=True, slots=True)
class ShowContext:
    """`/context`"""


@dataclass(frozen=True, slots=True)
class ClearContext:
    """`/context clear`, `/clear`"""


@dataclass(frozen=True, slots=True)
class Compact:
    """`/compact`"""


@dataclass(frozen=True, slots=True)
class ShowConfig:
    """`/config`, `/config <key>`"""

    key: str = ""


@dataclass(frozen=True, slots=True)
class SetConfig:
    """`/config <key> <value>`"""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Keep:
    """`/pin <text>`"""

    text: str


@dataclass(frozen=True, slots=True)
class ShowPins:
    """`/pins`"""


@dataclass(frozen=True, slots=True)
class ForgetText:
    """`/forget <text>`"""

    text: str


@dataclass(frozen=True, slots=True)
class AskWhy:
    """`/why <text>`"""

    text: str


@dataclass(frozen=True, slots=True)
class ShowFacts:
    """`/facts`, `/facts <text>`"""

    text: str = ""


Command: TypeAlias = ShowContext | ClearContext | Compact | ShowConfig | SetConfig | Keep | ShowPins | ForgetText | AskWhy | ShowFacts
_BARE: Mapping[str, Command] = MappingProxyType(
    {"/context": ShowContext(), "/context clear": ClearContext(), "/clear": ClearContext(), "/compact": Compact(), "/pins": ShowPins()}
)


@dataclass(frozen=True, slots=True)
class Heard:
    """A request without the commands in it, and the one that it ends with."""

    chat: ChatRequest
    command: Command | None


def heard(chat: ChatRequest, *, enabled: bool) -> Heard:
    """The request as the upstream may see it; the same object where it holds nothing of ours.

    Answers of ours are left out with their commands also where commands are not `enabled` any more: the conversation stays what it was.
    """
    last, gone = _unanswered(chat.messages) if enabled else -1, _exchanges(chat.messages, enabled=enabled)
    command = command_of(chat.messages[last]) if last >= 0 else None
    if command is not None:
        gone |= set(range(last, len(chat.messages)))
    if not gone:
        return Heard(chat, None)
    kept = tuple(message for at, message in enumerate(chat.messages) if at not in gone)
    return Heard(structs.replace(chat, messages=kept, is_part=True), command)


def command_of(message: Message) -> Command | None:
    """The command that a user message is, and is nothing but; None for any other message."""
    content = message.fields.get("content")
    if isinstance(content, list):
        content = content[0].get("text") if len(content) == 1 and isinstance(content[0], dict) and content[0].get("type") == "text" else None
    if not isinstance(content, str) or not (content[:1] == "/" or content[:1].isspace()):
        return None  # at once: every message of a history is looked at
    return parse(content) if message.role == "user" and content[:100].lstrip().startswith("/") else None


def parse(text: str) -> Command | None:
    """The command that a text is, blanks around it aside; None if it is none."""
    word, rest = _parted(text)
    match word:
        case "/config":
            key, value = _parted(rest)
            return SetConfig(key, value) if value else ShowConfig(key)
        case "/pin":
            return Keep(rest)
        case "/forget":
            return ForgetText(rest)
        case "/why":
            return AskWhy(rest)
        case "/facts":
            return ShowFacts(rest)
    return _BARE.get(" ".join((word, rest)).strip())


def is_own_answer(message: Message) -> bool:
    """Whether an assistant message is an answer of ours to a command."""
    return message.role == "assistant" and text_of(message).lstrip().startswith(MARK)


def _parted(text: str) -> tuple[str, str]:
    word, *rest = text.strip().split(maxsplit=1) or [""]
    return word, "".join(rest).strip()


def _unanswered(messages: Sequence[Message]) -> int:
    """Where the last message stands that is no system message (some clients put notes behind what the user says); -1 if there is none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role not in SYSTEM_ROLES), -1)


def _exchanges(messages: Sequence[Message], *, enabled: bool) -> set[int]:
    """Where commands and our answers to them stand; with `enabled`, also commands that got none because the client went away."""
    found: set[int] = set()
    for asked in [at for at, message in enumerate(messages) if command_of(message)]:
        answer = next((at for at in range(asked + 1, len(messages)) if messages[at].role not in SYSTEM_ROLES), None)
        if answer is not None and is_own_answer(messages[answer]):
            found |= {asked, answer}
        elif answer is not None and enabled and messages[answer].role == "user":
            found.add(asked)
    return found
