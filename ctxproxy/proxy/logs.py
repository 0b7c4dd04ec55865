"""The program's log: one line an event to standard error, as text or JSON; no message text, no credential."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Literal, TextIO

CREDENTIAL = re.compile(r"(?i)(bearer\s+|\b(?:sk|pk|rk|xai|gsk|key)-)[\w.~+/=-]{4,}")
"""What looks like a key, wherever it comes from: an upstream's words may repeat one."""
MARKS = ("bearer", "sk-", "pk-", "rk-", "xai-", "gsk-", "key-")
"""Without any of them nothing looks like a key: that is seen in a tenth of the time, and nearly every line has none."""


CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What could end a line or steer a terminal: a path or a header may hold it, to forge a line of ours."""


class _Text(logging.Formatter):
    _second: tuple[int, str] = (-1, "")
    """The last one that was written out: a busy program has many lines in it."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  the library's name
        second = int(record.created)
        if second != self._second[0]:
            self._second = second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._second[1]},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        when = self.formatTime(record)
        line = f"{when} {record.levelname} {on_one_line(record.getMessage())}"
        if record.exc_info:
            line += "".join(f"\n  | {on_one_line(part)}" for part in self.formatException(record.exc_info).split("\n"))
        return without_credentials(line)


class _Lines(logging.StreamHandler[TextIO]):
    """Standard error is written at each line's end by itself (the manual of `sys.stderr`)."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.stream.write(self.format(record) + "\n")
        except Exception:  # noqa: BLE001 - as in the library's own
            self.handleError(record)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": when, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return without_credentials(json.dumps(line, ensure_ascii=False))


def on_one_line(text: str) -> str:
    """The text with control characters and line ends escaped."""
    return text if text.isprintable() else CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def without_credentials(text: str) -> str:
    """The text with everything that looks like a key masked."""
    folded = text.casefold()
    for mark in MARKS:
        if mark in folded:
            return CREDENTIAL.sub(lambda found: found[1] + "***", text)
    return text


def set_up(level: str, form: Literal["text", "json"]) -> None:
    """Send the program's log to standard error; libraries are heard from warnings on, since their debug lines hold headers."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no format of ours tells them
    logging._srcfile = None  # noqa: SLF001  nor where in the code; so the manual says ("Optimization")
    handler = _Lines(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("ctxproxy").setLevel(level.upper())
