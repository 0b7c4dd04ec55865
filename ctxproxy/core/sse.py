"""Server-sent events out of chunks that are cut anywhere, by the rules of the WHATWG HTML standard §9.2.6 ("event stream interpretation").

Reads along only: the client gets the upstream's own bytes. Two differences from a browser: blocks without data are told too,
since a proxy has to know of keep-alives, and an event that the end of the stream left open is not thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_EVENT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Event:
    """One block of an event stream."""

    data: bytes = b""
    """The data lines joined by line feeds; not checked to be UTF-8."""
    name: str = ""
    """The `event` field; "" is the standard's "message"."""
    is_comment_only: bool = False
    """No data line: comments, a ping, a bare id or retry time; a browser would not dispatch it."""


class SseReader:
    """Give it the chunks of one stream; any chunking gives the same events.

    An event larger than `max_event_bytes` sets `overflowed`: from then on nothing is kept and no event comes any more.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.overflowed = False
        self._max_bytes = max_event_bytes
        self._size_bytes = 0  # of the block being read
        self._line: list[bytes] = []  # pieces of the line being read: joined once, or long lines cost their square
        self._after_cr = False
        self._at_start = True
        self._open_block()

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes, in order; [] if none."""
        if self.overflowed or not chunk:
            return []
        events: list[Event] = []
        for number, piece in enumerate(self._lines(chunk)):
            if number:
                self._end_line(events)
            self._grow(piece)
            if self.overflowed:
                break
        return events

    def plain(self, chunk: bytes) -> list[bytes] | None:
        """The data of each event of a chunk that `feed` would give too, where it holds nothing but whole events of one data line each.

        Blanks around the data stay. None, and nothing is read, where it does not, or where an event has begun before it.
        """
        is_open = self._line or self._block_is_open or self._after_cr or self.overflowed
        if is_open or not chunk.startswith(b"data:") or not chunk.endswith(b"\n\n") or b"\r" in chunk or len(chunk) > self._max_bytes:
            return None
        datas = chunk[5:-2].split(b"\n\ndata:")
        if chunk.count(b"\n") != 2 * len(datas):
            return None
        self._at_start = False
        return datas

    def finish(self) -> Event | None:
        """The event that the end of the stream leaves without its blank line; None if there is none."""
        events: list[Event] = []
        self._end_line(events)
        self._dispatch(events)
        return events[0] if events else None

    def _lines(self, chunk: bytes) -> list[bytes]:
        """The chunk cut at its line ends: LF, CRLF, CR. An LF after a CR that ended the chunk before belongs to that."""
        after_cr, self._after_cr = self._after_cr, chunk.endswith(b"\r")
        if after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk.split(b"\n")

    def _grow(self, piece: bytes) -> None:
        if not piece:
            return
        self._size_bytes += len(piece)
        self._line.append(piece)
        if self._size_bytes > self._max_bytes:
            self.overflowed = True
            self._line = []
            self._open_block()

    def _end_line(self, events: list[Event]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line:
            self._read_field(line)
        else:
            self._dispatch(events)

    def _read_field(self, line: bytes) -> None:
        self._block_is_open = True
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"error":  # llama.cpp's server wrote its errors as `error: {…}` lines
            self._name = "error"
            self._data.append(value)

    def _dispatch(self, events: list[Event]) -> None:
        if self._block_is_open:
            events.append(Event(b"\n".join(self._data), self._name, not self._data))
        self._open_block()

    def _open_block(self) -> None:
        self._block_is_open = False
        self._data: list[bytes] = []
        self._name = ""
        self._size_bytes = 0
