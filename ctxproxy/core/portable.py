"""A session as lines of JSON that lose nothing: one for the session, one for each message, decision, summary and pin, one at the end.

A message's own JSON stands in its line as it is, byte for byte; where it could not (a line break in it, or no JSON at all), as base64.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import msgspec

from ctxproxy.core import jsontext
from ctxproxy.core.messages import ROOT, Tip, identity, next_tip, read
from ctxproxy.core.records import Checkpoint, Pin, Session, SessionKey, StoredMessage, Summary
from ctxproxy.core.wire import from_log
from ctxproxy.errors import BadRequest

VERSION = 1
DERIVED = ("key", "messages", "turns")
"""Of a session: what its place in the file says, or its other lines."""
RECORDS: Mapping[str, type[Checkpoint] | type[Summary] | type[Pin]] = {"checkpoint": Checkpoint, "summary": Summary, "pin": Pin}
OWN_KINDS = ("session", "message", *RECORDS, "end")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Extra:
    """A line of a kind that a part beside these has joined with."""

    kind: str
    value: Any


Item: TypeAlias = Session | StoredMessage | Checkpoint | Summary | Pin | Extra


# ---------------------------------------------------------------- records to lines


def session_line(session: Session) -> bytes:
    """The first line."""
    own = {key: value for key, value in _plain(session).items() if key not in DERIVED}
    return _line("session", {"version": VERSION, "tenant": session.key.tenant, "name": session.key.name, **own})


def message_line(row: StoredMessage) -> bytes:
    """A message; an erased one has neither `message` nor `raw`."""
    values = _plain(row)
    raw = values.pop("raw")
    texts = {key: jsontext.encode(value) for key, value in {"record": "message", **values}.items()}
    if _can_stand(row.raw):
        texts["message"] = row.raw
    elif row.raw:
        texts["raw"] = jsontext.encode(raw)
    return jsontext.object_of(texts)


def record_line(record: Checkpoint | Summary | Pin) -> bytes:
    """A decision, a summary or a pin."""
    return _line(next(kind for kind, of in RECORDS.items() if isinstance(record, of)), _plain(record))


def extra_line(kind: str, value: Any) -> bytes:
    """A line of another part."""
    return _line(kind, {"value": value})


def end_line(lines: int) -> bytes:
    """The last line: how many stand before it."""
    return _line("end", {"lines": lines})


def _line(kind: str, values: Mapping[str, Any]) -> bytes:
    return jsontext.encode({"record": kind, **values})


def _plain(record: Any) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(record, order="deterministic")
    return {key: value for key, value in values.items() if not key.startswith("_")}


def _can_stand(raw: bytes) -> bool:
    """Whether a message's bytes come back as they are when they stand in a line."""
    if not (raw.startswith(b"{") and raw.endswith(b"}")) or b"\n" in raw or b"\r" in raw:
        return False
    try:
        raw.decode()
        return isinstance(jsontext.decode(raw), dict)
    except ValueError:
        return False


# ---------------------------------------------------------------- lines to records


class Reader:
    """Takes the lines of a file one by one, each checked against those before it; raises BadRequest with the line, the fault and what to do."""

    def __init__(self, extras: Mapping[str, Callable[[Any], None]]) -> None:
        """`extras`: the kinds of other parts, each with what raises ValueError for a value of it that is wrong."""
        self._extras = extras
        self._lines = 0
        self._tips: set[Tip] = {ROOT}
        self._stands_at = ROOT
        self._behind = False
        self._ended = False

    @property
    def messages(self) -> int:
        """How many messages there were."""
        return len(self._tips) - 1

    def take(self, line: bytes) -> Item | None:
        """What a line holds; None for the last one."""
        self._lines += 1
        try:
            return self._item(line)
        except (ValueError, msgspec.ValidationError) as error:
            raise _refused(self._lines, str(error)) from None

    def finish(self) -> None:
        """Raises BadRequest if the file is not whole."""
        if not self._ended:
            raise _refused(self._lines + 1, 'the file ends before its line {"record": "end"}')
        if self._stands_at not in self._tips:
            raise _refused(1, f"its tip {self._stands_at!r} is none of the messages")

    def _item(self, line: bytes) -> Item | None:
        if self._ended:
            raise ValueError("something stands behind the end")
        texts = jsontext.members(line)
        kind = _value(texts, "record", str)
        if (kind == "session") is not (self._lines == 1):
            raise ValueError('the first line, and no other, is the record "session"')
        if kind == "end":
            self._end(_value(texts, "lines", int))
            return None
        if kind in self._extras:
            self._behind = True
            value = jsontext.decode(bytes(texts["value"])) if "value" in texts else None
            self._extras[kind](value)
            return Extra(kind, value)
        if kind not in OWN_KINDS:
            raise ValueError(f"unknown record {kind!r}; known are {', '.join((*OWN_KINDS, *sorted(self._extras)))}")
        if kind == "message":
            return self._message(texts)
        self._behind = kind != "session"
        return self._session(line) if kind == "session" else _record(RECORDS[kind], line)

    def _end(self, lines: int) -> None:
        if lines != self._lines - 1:
            raise ValueError(f"{self._lines - 1} lines stand before it, not {lines}")
        self._ended = True

    def _session(self, line: bytes) -> Session:
        values = jsontext.decode(line)
        version = values.get("version")
        if version != VERSION:
            raise ValueError(f"version {version!r} of the format is not known, only {VERSION}")
        key = [values.get("tenant"), values.get("name")]
        session = _checked(msgspec.convert({**{k: v for k, v in values.items() if k not in DERIVED}, "key": key}, Session))
        if len(session.key.tenant) != 32 or not set(session.key.tenant) <= set("0123456789abcdef"):
            raise ValueError("tenant must be 32 hex digits")
        for raw in session.system:
            read(raw)
        self._stands_at = session.tip
        return session

    def _message(self, texts: Mapping[str, msgspec.Raw]) -> StoredMessage:
        values = {key: jsontext.decode(bytes(text)) for key, text in texts.items() if key not in ("record", "message", "raw")}
        row = _checked(msgspec.convert({**values, "raw": b""}, StoredMessage))
        row = replace(row, raw=_raw(texts))
        if self._behind:
            raise ValueError("all messages stand before all other lines")
        if row.parent not in self._tips:
            raise ValueError(f"its parent {row.parent!r} is none of the messages before it")
        if row.tip in self._tips:
            raise ValueError(f"its tip {row.tip!r} was there before")
        if row.raw:
            _prove(row)
        elif not _is_tip(row.tip):
            raise ValueError(f"its tip {row.tip!r} is none: 32 hex digits")
        self._tips.add(row.tip)
        return row


def named(session: Session, tenant: str, name: str) -> Session:
    """A session under another tenant or name."""
    return replace(session, key=SessionKey(tenant, name))


def _refused(line: int, reason: str) -> BadRequest:
    return BadRequest(f"line {line}: {reason}; nothing was imported: export the session again and send the file as it is", param=f"line {line}")


def _value(texts: Mapping[str, msgspec.Raw], key: str, kind: type[T]) -> T:
    value = jsontext.decode(bytes(texts[key])) if key in texts else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{key} is missing, or is no {'text' if kind is str else 'whole number'}")
    return value


def _raw(texts: Mapping[str, msgspec.Raw]) -> bytes:
    if "message" in texts:
        return bytes(texts["message"])
    try:
        return base64.b64decode(_value(texts, "raw", str), validate=True) if "raw" in texts else b""
    except binascii.Error:
        raise ValueError("raw is no base64") from None


def _prove(row: StoredMessage) -> None:
    """A tip names its message and all before it: a file whose tips fit its bytes was not changed."""
    message = from_log(row.raw)
    if next_tip(row.parent, identity(message)) != row.tip:
        raise ValueError(f"its tip {row.tip!r} does not match its bytes")
    if message.role != row.role:
        raise ValueError(f"its role {row.role!r} does not match its bytes")


def _is_tip(tip: str) -> bool:
    return len(tip) == 32 and set(tip) <= set("0123456789abcdef")


def _record(kind: type[Checkpoint] | type[Summary] | type[Pin], line: bytes) -> Item:
    values = jsontext.decode(line)
    record: Checkpoint | Summary | Pin = _checked(msgspec.convert(values, kind))
    if isinstance(record, Checkpoint):
        for entry in record.entries:
            if entry.raw is not None:
                read(entry.raw)
    return record


def _checked(record: T) -> T:
    """Times and counts that a store and a clock can hold."""
    for name in getattr(record, "__dataclass_fields__", ()):
        value = getattr(record, name)
        if isinstance(value, float) and not (math.isfinite(value) and 0 <= value < 1e12):
            raise ValueError(f"{name} is no time")
        if isinstance(value, int) and not 0 <= value < 2**62:
            raise ValueError(f"{name} is out of range")
    return record
