"""`ctxproxy models`: what a running proxy believes of each model's window, and from where."""

from __future__ import annotations

import argparse

from ctxproxy.cli import output
from ctxproxy.cli.admin_client import connect, connection_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the proxy is, and the form of the answer."""
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the window table; raises CallFailed."""
    entries = list(connect(arguments).pages("models"))
    print(output.as_json(entries) if arguments.json else output.table(entries) or "no model has been used yet")
    return 0
