"""`ctxproxy stats`: the totals of a running proxy."""

from __future__ import annotations

import argparse

from ctxproxy.cli import output
from ctxproxy.cli.admin_client import connect, connection_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the proxy is."""
    connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print totals and savings as JSON; raises CallFailed."""
    print(output.as_json(connect(arguments).call("GET", "stats")))
    return 0
