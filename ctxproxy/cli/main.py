"""The command line: finds the verb's file, lets it read its arguments and run; a verb is imported only when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, cast

from ctxproxy import __version__
from ctxproxy.errors import CtxproxyError

VERBS: Mapping[str, str] = MappingProxyType(
    {
        "serve": "run the proxy",
        "check": "validate the configuration and show what is in force",
        "plan": "what would be sent for a request, without sending it",
        "sessions": "list, show, view, export, import or delete sessions of a running proxy",
        "why": "where a phrase or a file name went in a session of a running proxy",
        "stats": "totals of a running proxy",
        "models": "the window table of a running proxy",
        "migrate": "bring the store to the schema of this version",
        "learn": "priorities that fit what answers have quoted, as a profile for the configuration",
        "demo": "a long conversation through the built-in model, with a live view of what is sent",
    }
)
"""Each verb is a module of this package with `add_arguments(parser)` and `run(args) -> exit status`."""


class Verb(Protocol):
    """What a verb's module offers."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 done, 1 it could not be done, 2 wrong usage, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = next((word for word in words if word in VERBS), None)
    verb = _verb(chosen) if chosen else None
    arguments = _parser(chosen, verb).parse_args(words)
    assert verb is not None  # the parser demands one
    try:
        status = verb.run(arguments)
        sys.stdout.flush()  # here, where a reader that is gone can still be told apart
        return status
    except CtxproxyError as error:
        print(f"ctxproxy: {error.message}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has seen enough (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _verb(name: str) -> Verb:
    return cast("Verb", importlib.import_module(f"ctxproxy.cli.{name}"))


def _parser(chosen: str | None, verb: Verb | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ctxproxy", description="An OpenAI-compatible proxy that keeps every conversation inside the model's window."
    )
    parser.add_argument("--version", action="version", version=f"ctxproxy {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, purpose in VERBS.items():
        own = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        if verb is not None and name == chosen:
            verb.add_arguments(own)
    return parser
