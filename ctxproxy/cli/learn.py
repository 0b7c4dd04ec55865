"""`ctxproxy learn`: priorities that fit what answers have quoted, as a profile for the configuration."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from ctxproxy.cli.settings import config_argument, path_of
from ctxproxy.config.load import load
from ctxproxy.core.learned_priorities import LEAST, Learned, fit, read_lines
from ctxproxy.core.presets import PRESETS
from ctxproxy.errors import CtxproxyError
from ctxproxy.proxy.outcome_log import FILE, OLDER

PRESET = "hybrid"
"""The one that chooses by priority."""


class TooLittle(CtxproxyError):
    """There is nothing to learn from yet."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which log, and the profile's name."""
    parser.add_argument("log", nargs="*", type=Path, metavar="LOG", help=f"outcomes to learn from (default: {FILE} under data_dir)")
    parser.add_argument("--name", default="learned", metavar="NAME", help="of the profile (default: learned)")
    config_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the profile; raises TooLittle or ConfigError."""
    files = arguments.log or [Path(load(path_of(arguments), os.environ, {}).data_dir) / name for name in (OLDER, FILE)]
    learned = fit(read_lines(_lines(files)))
    if learned is None:
        raise TooLittle(
            f"too few outcomes in {' and '.join(map(str, files))}: {LEAST} messages that were quoted and as many that were not are needed; "
            "memory.outcomes: true logs them"
        )
    print(_told(learned, arguments.name), end="")
    return 0


def _lines(files: list[Path]) -> Iterator[bytes]:
    for path in files:
        try:
            with path.open("rb") as file:
                yield from file
        except FileNotFoundError:
            continue
        except OSError as error:
            raise TooLittle(f"{path}: {error.strerror}") from None


def _told(learned: Learned, name: str) -> str:
    """The profile as YAML, under lines that say what it comes from."""
    weights = {"scores": dict(learned.scores), "bonuses": dict(learned.bonuses)}
    pipeline = [{**stage, **weights} if stage["stage"] == "priority_window" else dict(stage) for stage in PRESETS[PRESET].stages]
    said = (
        f"# Learned from {learned.total.seen} messages in prompts, of which answers quoted {learned.total.quoted}.\n"
        f"# A quoted one is worth more than one that was not in {learned.before:.0%} of all pairs by the defaults, in {learned.after:.0%} by these.\n"
    )
    return said + yaml.safe_dump({"profiles": {name: {"preset": PRESET, "pipeline": pipeline}}}, sort_keys=False, allow_unicode=True)
