"""`ctxproxy serve`: run the proxy until it is told to stop."""

from __future__ import annotations

import argparse
import os

from ctxproxy.cli.settings import config_argument, path_of
from ctxproxy.config.load import load
from ctxproxy.config.reload import Holder

FLAGS = (
    ("--host", "listen.host", str, "HOST", "address to listen on"),
    ("--port", "listen.port", int, "PORT", "port to listen on; 0 takes a free one"),
    ("--upstream", "upstream.base_url", str, "URL", "where requests go; demo is the built-in model"),
    ("--workers", "listen.workers", int, "N", "worker processes"),
    ("--log-level", "log.level", str, "LEVEL", "debug, info, warning or error"),
)
"""Flag, the key that it sets, its type, and the words of the help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags; each goes before the environment and the file."""
    config_argument(parser)
    for flag, key, kind, metavar, purpose in FLAGS:
        parser.add_argument(flag, dest=key, type=kind, metavar=metavar, help=purpose)


def run(arguments: argparse.Namespace) -> int:
    """Load the settings and serve; raises ConfigError."""
    given = {key: value for _, key, *_ in FLAGS if (value := getattr(arguments, key)) is not None}
    settings = load(path_of(arguments), os.environ, given)
    from ctxproxy import serving  # noqa: PLC0415 - aiohttp and the stores take long to load, and a wrong configuration is told at once

    return serving.serve(settings, Holder(settings, os.environ))
