"""The one argument that all verbs share: which configuration file."""

from __future__ import annotations

import argparse
from pathlib import Path


def config_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--config FILE`."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file (default: ./config.yaml if it is there)")


def path_of(arguments: argparse.Namespace) -> Path | None:
    """The configuration file that was named, None if none was."""
    path: Path | None = arguments.config
    return path
