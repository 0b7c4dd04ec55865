"""`ctxproxy migrate`: bring the store to the schema of this version before the proxy is started."""

from __future__ import annotations

import argparse
import os
import sys

from ctxproxy.cli.settings import config_argument, path_of
from ctxproxy.config.load import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the file."""
    config_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the schema version before and after; 1 if the store was damaged and a fresh one made. Raises ConfigError or StoreUnavailable."""
    settings = load(path_of(arguments), os.environ, {})
    from ctxproxy.store.open import migrate  # noqa: PLC0415 - a wrong configuration is told before anything else is loaded
    from ctxproxy.store.sqlite_file import SetAside  # noqa: PLC0415
    from ctxproxy.wiring import store_url  # noqa: PLC0415

    damaged: list[SetAside] = []
    url = store_url(settings)
    versions = migrate(url, damaged.append)
    for found in damaged:
        print(f"ctxproxy: {url} was damaged ({found.reason}); it was set aside as {found.path.name}, and a fresh one made", file=sys.stderr)
    print(_told(url, versions))
    return 1 if damaged else 0


def _told(url: str, versions: tuple[int, int] | None) -> str:
    if versions is None:
        return f"{url} keeps nothing on disk: there is nothing to migrate"
    before, now = versions
    if before == now:
        return f"{url} has schema version {now} already"
    return f"{url} has schema version {now} now, {f'{before} before' if before else 'and was made'}"
