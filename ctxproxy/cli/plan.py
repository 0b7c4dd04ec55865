"""`ctxproxy plan REQUEST.json`: what a running proxy would send for a request, and why; nothing goes upstream."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ctxproxy.cli import output
from ctxproxy.cli.admin_client import CallFailed, connect, connection_arguments
from ctxproxy.cli.plan_text import plan_text

REQUEST_KEYS = ("messages", "model", "tools", "functions", "response_format")
"""The parts of a request that take room in its prompt."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The request, and what to plan it under."""
    parser.add_argument("request", metavar="REQUEST.json", help="body of a chat completion request; - reads standard input")
    parser.add_argument("--preset", metavar="NAME", help="plan under this preset or profile")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="plan for a prompt budget of N tokens")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")
    connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; raises CallFailed."""
    request = _request(arguments.request)
    asked = {key: request[key] for key in REQUEST_KEYS if key in request}
    settings = {"preset": arguments.preset, "max_tokens": arguments.max_tokens}
    body = {**asked, **{key: value for key, value in settings.items() if value is not None}}
    output.show(connect(arguments).call("POST", "plan", body=body), plan_text, as_is=arguments.json)
    return 0


def _request(name: str) -> dict[str, object]:
    try:
        request = json.loads(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())
    except OSError as error:
        raise CallFailed(f"{name}: {error.strerror}") from None
    except ValueError as error:
        raise CallFailed(f"{name}: it is not JSON: {error}") from None
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        raise CallFailed(f"{name}: expected the body of a chat completion request, with a list of messages")
    return request
