"""`ctxproxy why SESSION TEXT`: where a phrase or a file name went in a session of a running proxy."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ctxproxy.cli import output
from ctxproxy.cli.admin_client import connect, connection_arguments, in_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The session, and what to look for."""
    parser.add_argument("session", metavar="SESSION", help="id, or name if only one session has it")
    parser.add_argument("text", metavar="TEXT", nargs="+", help="some words that were said, or the name of a file")
    parser.add_argument("--limit", type=int, metavar="N", help="tell of at most N messages (default 50)")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print where it went; raises CallFailed."""
    query = {"text": " ".join(arguments.text), "limit": arguments.limit}
    answer = connect(arguments).call("GET", f"sessions/{in_path(arguments.session)}/why", query=query)
    output.show(answer, _text, as_is=arguments.json)
    return 0


def _text(why: Mapping[str, Any]) -> str:
    return "\n".join(_lines(why))


def _lines(why: Mapping[str, Any]) -> Iterator[str]:
    held, number = why["data"], len(why["data"]) + why["left_off"]
    yield f"{why['text']!r} stands in {number} of the {why['searched']} messages of {why['session']}"
    places = ", ".join(f"#{at}" for at in why["in_prompt"])
    yield f"the next request carries it, at {places}" if places else "the next request does not carry it"
    if why["pins"]:
        yield f"pinned: {', '.join(map(str, why['pins']))}"
    for at, one in enumerate(held, 1):
        yield ""
        yield from _held(at, one)
    if why["left_off"]:
        yield f"\n{why['left_off']} more are not told of"
    if why["pin"]:
        yield f"\nto have it back: {why['pin']['method']} /ctxproxy/api/{why['pin']['path']}"
        yield json.dumps(why["pin"]["body"], ensure_ascii=False)


def _held(at: int, one: Mapping[str, Any]) -> Iterator[str]:
    branches = f", on {one['branches']} branches" if one["branches"] > 1 else ""
    yield f"{at}. {one['role']}, turn {one['turn']}, {output.time_shown(one['time'])}, in {one['place']}{branches}"
    yield f"   {one['excerpt']}"
    yield f"   now {one['state']}: {one['why']}"
    for step in one["steps"]:
        when = "with the next request" if step["time"] is None else f"{output.time_shown(step['time'])}, with turn {step['turn']}"
        yield f"   {when}: {step['why']}"
    if stands := one["stands_in"]:
        yield f"   in its place: {stands['kind']} at #{stands['at']}, {'with' if stands['holds'] else 'without'} the phrase: {stands['excerpt']}"
    elif one["state"] != "sent":
        yield "   nothing stands in its place"
    yield f"   original: /ctxproxy/api/expand/{one['marker']} (tip {one['tip']})"
