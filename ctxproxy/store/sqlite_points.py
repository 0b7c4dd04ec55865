"""What is done to the table of memory points, inside a transaction that the caller holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ctxproxy.core.messages import Tip
from ctxproxy.core.points import MAX_POINTS, Point, PointChanges
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
    connection.execute(QUERIES["prune"], {"session": session, "most": MAX_POINTS})
    connection.execute(QUERIES["restore_points"], {"session": session})


def _put_one(connection: sqlite3.Connection, session: int, user: str, point: Point) -> int | None:
    """The number under which a point is kept; None if nothing was added: an anchor is kept once, and what a message tells once."""
    named = {"session": session, "kind": point.kind, "key": pack(point.key)}
    told = {"value": pack(point.value), "tip": point.tip, "time": point.time, "weight": point.weight, "source": point.source, "user": pack(user)}
    if connection.execute(QUERIES["touch_anchor"], {**named, "time": point.time, "weight": point.weight}).rowcount:
        return None
    if connection.execute(QUERIES["is_put"], {**named, "value": told["value"], "tip": point.tip}).fetchone()[0]:
        return None
    number = int(connection.execute(QUERIES["put_point"], {**named, **told}).fetchone()[0])
    connection.execute(QUERIES["supersede_key"], {**named, "number": number})
    return number


def drop_point(connection: sqlite3.Connection, session: int, number: int) -> bool:
    """Delete a point with all that it took the place of; False if it is not there."""
    return connection.execute(QUERIES["drop_point"], {"session": session, "number": number}).rowcount > 0


def forget_points(connection: sqlite3.Connection, session: int, tip: Tip, covering: Iterable[Tip]) -> None:
    """Delete what a message told, and what summaries over it told; what that took the place of holds again."""
    connection.execute(QUERIES["drop_points_of"], {"session": session, "tip": tip, "source": ""})
    for one in covering:
        connection.execute(QUERIES["drop_points_of"], {"session": session, "tip": one, "source": "summary"})
    connection.execute(QUERIES["restore_points"], {"session": session})
