"""Which conversation a request belongs to, and how its messages join the chain of tips that is stored.

Full history: the request is the truth; the longest stored prefix of its chain is the parent, edits and regenerations are forks.
Thin: the store is the truth; the request's messages are appended at the session's tip. No fuzzy matching, ever.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import Literal, TypeAlias

from ctxproxy.core.messages import ROOT, Message, Tip, chain, identity, tool_calls
from ctxproxy.core.records import Manner, Session, StoredMessage
from ctxproxy.core.wire import logged

Mode: TypeAlias = Literal["auto", "full", "append"]
SHARED_TENANT = "shared"


class Joined(Enum):
    """How a request's history relates to what is stored."""

    NEW = "new"
    EXTENDS = "extends"
    FORKS = "forks"
    THIN = "thin"


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A request's whole logical history, oldest first, without the leading system messages."""

    joined: Joined
    history: tuple[Message, ...]
    tips: tuple[Tip, ...]
    """One per message of `history`."""
    fresh_from: int
    """Index of the first message that the store does not hold."""

    @property
    def tip(self) -> Tip:
        return self.tips[-1] if self.tips else ROOT


@lru_cache(maxsize=256)
def tenant_of(secret: bytes, credential: str, origin: str, *, shared: bool = False) -> str:
    """32 hex digits for a credential at an upstream's origin; with `shared`, for the origin alone. Not reversible without `secret`."""
    subject = SHARED_TENANT if shared else f"credential {credential}"
    return hmac.digest(secret, f"{origin}\n{subject}".encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def derived_name(messages: Sequence[Message]) -> str | None:
    """A session name for clients that cannot set a header: a digest of the first user message; None if there is none."""
    first = next((m for m in messages if m.role == "user"), None)
    return None if first is None else "auto-" + identity(first).hex()[:24]


def frame_of(model: str, *, stream: bool, tools: bytes | None) -> str:
    """A digest of how a client asks: a thin client asks alike each time, a side request (title, tags) does not.

    Its first digit tells requests that stream or bring tools from those that do not, as side requests mostly do not.
    """
    return _frame(model, tools, stream=stream) if tools else _frame_without_tools(model, stream=stream)


@lru_cache(maxsize=256)
def _frame_without_tools(model: str, *, stream: bool) -> str:
    return _frame(model, None, stream=stream)


def _frame(model: str, tools: bytes | None, *, stream: bool) -> str:
    asked = repr((model, stream, tools or b"")).encode("utf-8", "surrogatepass")
    return str(stream + bool(tools)) + hashlib.blake2b(asked, digest_size=16).hexdigest()


def may_be_thin(session: Session | None, messages: Sequence[Message], *, mode: Mode, named: bool, frame: str, same_system: bool) -> bool:
    """Whether a request may hold only the new messages of its session (its first tip must be unknown besides, in mode `auto`).

    `auto` infers it only if all hold: the client named the session, it is known, it was never seen to send full history, the
    request asks in the session's own frame, brings no other system messages and no assistant message.
    """
    if mode != "auto":
        return mode == "append"
    if session is None or not named or session.manner == "full" or not messages or any(m.role not in ("user", "tool") for m in messages):
        return False
    return session.manner == "thin" or (session.tip != ROOT and session.frame == frame and same_system)


def answers_open_calls(messages: Sequence[Message], stored: Sequence[Message]) -> bool:
    """Whether the tool results at the front of a thin request answer the calls at the end of what is stored."""
    leading = takewhile(lambda m: m.role == "tool", messages)
    open_ids = {call.id for call in tool_calls(stored[-1])} if stored else set()
    return all(str(m.fields.get("tool_call_id")) in open_ids for m in leading)


def join_full(messages: Sequence[Message], tips: Sequence[Tip], known: int) -> Reconciled:
    """A full history of which the first `known` messages are stored."""
    joined = Joined.NEW if known == 0 else Joined.EXTENDS if known == len(tips) else Joined.FORKS
    return Reconciled(joined, tuple(messages), tuple(tips), known)


def join_thin(messages: Sequence[Message], stored: Sequence[Message], stored_tips: Sequence[Tip], *, retried: bool) -> Reconciled:
    """New messages appended to the stored ones; a request that repeats the unanswered end of the store is the same request again.

    With `retried` (the client says that it sends a request again) an answer behind that end is set aside, too.
    """
    identities = [identity(m) for m in messages]
    at = _repeated_at(identities, stored, retried=retried)
    kept, kept_tips = stored[:at], stored_tips[:at]
    tips = chain(kept_tips[-1] if kept_tips else ROOT, identities)
    fresh_from = len(kept) + (len(messages) if at < len(stored) else 0)
    return Reconciled(Joined.THIN, (*kept, *messages), (*kept_tips, *tips), fresh_from)


def _repeated_at(identities: Sequence[bytes], stored: Sequence[Message], *, retried: bool) -> int:
    """Where in the store the request's messages already stand as its unanswered end; the store's length if they do not."""
    end = len(stored) - 1 if retried and stored and stored[-1].role == "assistant" else len(stored)
    start = end - len(identities)
    if start < 0 or not identities:
        return len(stored)
    return start if [identity(m) for m in stored[start:end]] == list(identities) else len(stored)


def rebased(reconciled: Reconciled, onto: Sequence[Message], onto_tips: Sequence[Tip]) -> Reconciled:
    """A thin request's new messages behind a history that another request has meanwhile written."""
    new = reconciled.history[reconciled.fresh_from :]
    tips = chain(onto_tips[-1] if onto_tips else ROOT, [identity(m) for m in new])
    return Reconciled(Joined.THIN, (*onto, *new), (*onto_tips, *tips), len(onto))


def manner_seen(reconciled: Reconciled, messages: Sequence[Message]) -> Manner:
    """What a request tells of its client's manner; it sticks once known."""
    if reconciled.joined is Joined.THIN:
        return "thin"
    return "full" if any(m.role == "assistant" for m in messages) else "unknown"


def moves_tip(session: Session | None, reconciled: Reconciled, frame: str) -> bool:
    """Whether the session stands at this request's end afterwards: not for a side request in another frame.

    One that came first gives way (Open WebUI and opencode may ask for a title before the chat itself).
    """
    if session is None or session.tip == ROOT or reconciled.fresh_from > 0:
        return True
    return session.frame in ("", frame) or frame[0] > session.frame[0]


def to_store(reconciled: Reconciled, tokens: Sequence[int], now: float) -> tuple[StoredMessage, ...]:
    """The rows for the messages that the store does not hold yet; `tokens` has one count per message of the history."""
    return tuple(
        StoredMessage(
            tip=reconciled.tips[i],
            parent=reconciled.tips[i - 1] if i else ROOT,
            raw=logged(reconciled.history[i]),
            role=reconciled.history[i].role,
            tokens=tokens[i],
            created=now,
        )
        for i in range(reconciled.fresh_from, len(reconciled.tips))
    )
