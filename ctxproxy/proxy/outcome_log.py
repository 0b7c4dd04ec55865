"""What answers made of what was in their prompts is logged as counts, behind the answer, for weights to be learned from (001-80)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from ctxproxy.core.learned_priorities import as_line, outcomes
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.planned import Plan
from ctxproxy.core.stages.priority_window import PriorityWindow
from ctxproxy.proxy.memory_files import NO_FOLLOW
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
FILE, OLDER = "outcomes.jsonl", "outcomes.1.jsonl"
MOST_BYTES = 8_000_000
"""Of the file; then it takes the place of the older one. Some ten thousand answers."""


class OutcomeLog:
    """Lines in a file under `data_dir`: counts by features, no texts and no names."""

    def __init__(self, data_dir: Path, tasks: Tasks) -> None:
        self._data_dir = data_dir
        self._tasks = tasks

    def begin(self, plan: Plan, replies: Sequence[Message]) -> None:
        """Log what the first of some replies made of a prompt; returns at once."""
        if replies and plan.transcript.last_user >= 0:
            self._tasks.start(self._log(plan, text_of(replies[0])), "outcomes")

    async def _log(self, plan: Plan, answer: str) -> None:
        try:
            await asyncio.to_thread(self._write, plan, answer)
        except OSError as error:
            log.warning("outcomes could not be logged: %s", error.strerror or type(error).__name__)

    def _write(self, plan: Plan, answer: str) -> None:
        found = outcomes(plan.transcript, int(PriorityWindow().goal_share * plan.budget.limit), answer)
        if not found:
            return
        file = self._data_dir / FILE
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_size > MOST_BYTES:
                file.replace(self._data_dir / OLDER)
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW, 0o600)
        try:
            os.write(descriptor, as_line(found))
        finally:
            os.close(descriptor)
