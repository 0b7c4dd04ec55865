"""`ctxproxy sessions`: list, show, view, export, import or delete the sessions of a running proxy."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO

from ctxproxy.cli import output
from ctxproxy.cli.admin_client import AdminClient, CallFailed, connect, connection_arguments, in_path
from ctxproxy.cli.plan_text import plan_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """An action for each thing that can be done with sessions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the sessions, last used first")
    listing.add_argument("query", nargs="?", help="only those whose name holds this")
    listing.add_argument("--limit", type=int, default=50, metavar="N", help="at most this many (default 50)")
    listing.add_argument("--json", action="store_true", help="JSON instead of a table")
    for name, purpose in (("show", "counters, branches, checkpoints, summaries, pins"), ("view", "what the next request would carry, and why")):
        actions.add_parser(name, help=purpose)
    actions.choices["view"].add_argument("--json", action="store_true", help="JSON instead of tables")
    export = actions.add_parser("export", help="all of a session, as lines of JSON that can be imported")
    export.add_argument("-o", "--output", metavar="FILE", help="where to (default: standard output)")
    export.add_argument("--messages", action="store_true", help="only its messages as they were said, a line of JSON each")
    export.add_argument("--branch", metavar="TIP", help="with --messages: those of another branch")
    taking = actions.add_parser("import", help="take an exported session in")
    taking.add_argument("file", metavar="FILE", help="what export has written; - reads standard input")
    taking.add_argument("--as", dest="name", metavar="NAME", help="under another name")
    taking.add_argument("--tenant", metavar="HEX", help="to this tenant of the sessions here: its first 8 hex digits or all (default: as it was)")
    actions.add_parser("delete", help="erase the session for good")
    for name, action in actions.choices.items():
        if name not in ("list", "import"):
            action.add_argument("session", help="id, or name if only one session has it")
        connection_arguments(action)


def run(arguments: argparse.Namespace) -> int:
    """Do it and print the answer; raises CallFailed."""
    ACTIONS[arguments.action](connect(arguments), arguments)
    return 0


def _list(client: AdminClient, arguments: argparse.Namespace) -> None:
    pages = client.pages("sessions", query={"limit": min(max(arguments.limit, 1), 100), "q": arguments.query})
    entries = list(islice(pages, arguments.limit))
    if arguments.json:
        print(output.as_json(entries))
    else:
        print(output.table(entries) or "no sessions")


def _show(client: AdminClient, arguments: argparse.Namespace) -> None:
    print(output.as_json(client.call("GET", f"sessions/{in_path(arguments.session)}")))


def _view(client: AdminClient, arguments: argparse.Namespace) -> None:
    output.show(client.call("GET", f"sessions/{in_path(arguments.session)}/view"), plan_text, as_is=arguments.json)


def _export(client: AdminClient, arguments: argparse.Namespace) -> None:
    path = f"sessions/{in_path(arguments.session)}"
    with _written_to(arguments.output) as file:
        if not arguments.messages:
            client.download(f"{path}/export", file)
            return
        for entry in client.pages(f"{path}/messages", query={"branch": arguments.branch}):
            file.write(output.as_line(entry["message"]).encode() + b"\n")


@contextmanager
def _written_to(name: str | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that is there only once it is whole, and its owner's alone."""
    if name is None:
        yield sys.stdout.buffer
        return
    beside = Path(f"{name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
        beside.replace(name)
    except OSError as error:
        raise CallFailed(f"{name}: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


def _import(client: AdminClient, arguments: argparse.Namespace) -> None:
    try:
        with nullcontext(sys.stdin.buffer) if arguments.file == "-" else Path(arguments.file).open("rb") as file:
            done = client.upload("import", file, query={"as": arguments.name, "tenant": arguments.tenant})
    except OSError as error:
        raise CallFailed(f"{arguments.file}: {error.strerror}") from None
    print(output.as_json(done))


def _delete(client: AdminClient, arguments: argparse.Namespace) -> None:
    client.call("DELETE", f"sessions/{in_path(arguments.session)}")
    print(f"erased {arguments.session}")


ACTIONS: Mapping[str, Callable[[AdminClient, argparse.Namespace], None]] = MappingProxyType(
    {"list": _list, "show": _show, "view": _view, "export": _export, "import": _import, "delete": _delete}
)
