"""What is done to the table of memory points, inside a transaction that the caller holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ctxproxy.core.messages import Tip
from ctxproxy.core.points import MAX_POINTS, MemoryPoint, Point, PointChanges, heir
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import key_values, pack

QUERIES = named_queries("facts.sql")


def put_points(connection: sqlite3.Connection, session: int, user: str, changes: PointChanges) -> None:
    """Carry changes out: new ones under the next numbers, the newest of a key in force, no more than MAX_POINTS of them."""
    numbers = [_put_one(connection, session, user, point) for point in changes.new]
    for number, at in changes.replaced:
        if numbers[at] is not None:
            connection.execute(QUERIES["supersede"], {"session": session, "number": number, "by": numbers[at]})
    for of, number in changes.taken_back:
        connection.execute(QUERIES["take_back"], {**key_values(of), "number": number})
    _remove(connection, session, connection.execute(QUERIES["surplus"], {"session": session, "most": MAX_POINTS}).fetchall())


def take_points(connection: sqlite3.Connection, session: int, points: Sequence[MemoryPoint]) -> None:
    """Keep points just as they are told, and no others."""
    connection.execute(QUERIES["drop_points"], {"session": session})
    for one in points:
        values = {"number": one.number, "user": pack(one.user), "superseded_by": one.superseded_by, "taken_back": one.taken_back}
        connection.execute(QUERIES["take_point"], {"session": session, **_values(one.point), **values})


def _values(point: Point) -> dict[str, object]:
    told = {"tip": point.tip, "time": point.time, "weight": point.weight, "source": point.source}
    return {"kind": point.kind, "key": pack(point.key), "value": pack(point.value), **told}


def _put_one(connection: sqlite3.Connection, session: int, user: str, point: Point) -> int | None:
    """The number under which a point is kept; None if nothing was added: an anchor is kept once, and what a message tells once."""
    values = {"session": session, **_values(point)}
    if connection.execute(QUERIES["touch_anchor"], values).rowcount or connection.execute(QUERIES["is_put"], values).fetchone()[0]:
        return None
    number = int(connection.execute(QUERIES["put_point"], {**values, "user": pack(user)}).fetchone()[0])
    for query in ("supersede_key", "supersede_late"):
        connection.execute(QUERIES[query], {**values, "number": number})
    return number


def drop_point(connection: sqlite3.Connection, session: int, number: int) -> bool:
    """Delete a point with all that it took the place of; False if it is not there."""
    return connection.execute(QUERIES["drop_point"], {"session": session, "number": number}).rowcount > 0


def forget_points(connection: sqlite3.Connection, session: int, tip: Tip, covering: Iterable[Tip]) -> None:
    """Delete what a message told, and what summaries over it told; what that took the place of holds again, unless something newer does."""
    for at, source in [(tip, ""), *((one, "summary") for one in covering)]:
        _remove(connection, session, connection.execute(QUERIES["points_told_by"], {"session": session, "tip": at, "source": source}).fetchall())


def _remove(connection: sqlite3.Connection, session: int, points: Sequence[tuple[int, int | None]]) -> None:
    """Delete points; each leaves what it took the place of to what took its own."""
    gone = dict(points)
    for number in gone:
        if (by := heir(number, gone)) is not None:
            connection.execute(QUERIES["pass_on"], {"session": session, "number": number, "by": by})
        connection.execute(QUERIES["remove_point"], {"session": session, "number": number})
    connection.execute(QUERIES["restore_points"], {"session": session})
