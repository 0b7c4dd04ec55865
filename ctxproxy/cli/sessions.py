"""`ctxproxy sessions`: list, show, view, export or delete the sessions of a running proxy."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType

from ctxproxy.cli import output
from ctxproxy.cli.admin_client import AdminClient, connect, connection_arguments, in_path
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
    actions.add_parser("export", help="every message as it was, a line of JSON each").add_argument("--branch", metavar="TIP", help="another branch")
    actions.add_parser("delete", help="erase the session for good")
    for name, action in actions.choices.items():
        if name != "list":
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
    for entry in client.pages(f"sessions/{in_path(arguments.session)}/messages", query={"branch": arguments.branch}):
        print(output.as_line(entry["message"]))


def _delete(client: AdminClient, arguments: argparse.Namespace) -> None:
    client.call("DELETE", f"sessions/{in_path(arguments.session)}")
    print(f"erased {arguments.session}")


ACTIONS: Mapping[str, Callable[[AdminClient, argparse.Namespace], None]] = MappingProxyType(
    {"list": _list, "show": _show, "view": _view, "export": _export, "delete": _delete}
)
