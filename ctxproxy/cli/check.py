"""`ctxproxy check`: validate the configuration and print what is in force, secrets masked."""

from __future__ import annotations

import argparse
import os

from ctxproxy.cli.settings import config_argument, path_of
from ctxproxy.config.explain import explain
from ctxproxy.config.load import read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the file."""
    config_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the settings as YAML, each that is not a default with its source; raises ConfigError naming every fault."""
    loaded = read(path_of(arguments), os.environ, {})
    print(f"# valid: {loaded.settings.origin or 'no file, defaults'}")
    print(explain(loaded))
    return 0
