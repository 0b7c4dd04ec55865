"""How much memory one large request takes; `bench/memory.py` measures what many idle sessions hold."""

from __future__ import annotations

import sys

import pytest

from bench.memory import BODY_LIMIT, fresh, large


@pytest.mark.skipif(sys.platform != "linux", reason="the figures are read from /proc")
@pytest.mark.parametrize("one_message", [True, False], ids=["one message", "many messages"])
async def test_a_body_of_four_megabytes_takes_less_than_sixty_more(*, one_message: bool) -> None:
    async with fresh() as program:
        assert await large(program, one_message=one_message) < BODY_LIMIT
