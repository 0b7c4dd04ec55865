from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from ctxproxy.config.load import load
from ctxproxy.config.reload import Holder, Refused, Reloaded


class Scene:
    """A file, the holder of its settings, and what the holder said."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: list[Reloaded | Refused] = []
        path.write_text("log: {level: debug}", encoding="utf-8")
        self.holder = Holder(load(path, {}, {"listen.port": 7}), {})

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")
        self.said.append(self.holder.reload())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "config.yaml")


def test_new_settings_come_into_force(scene: Scene) -> None:
    scene.write("log: {level: error}\ncontext: {max_tokens: 9}")
    assert (scene.holder.current().log.level, scene.holder.current().context.max_tokens) == ("error", 9)
    assert scene.said == [Reloaded(changed=("context", "log"), needs_restart=())]


def test_wrong_ones_leave_the_old_in_force_and_say_so(scene: Scene) -> None:
    before = scene.holder.current()
    scene.write("log: {level: loud}")
    assert scene.holder.current() is before
    (said,) = scene.said
    assert isinstance(said, Refused)
    assert "log.level" in said.error.message


def test_a_file_that_is_gone_leaves_the_old_in_force(scene: Scene) -> None:
    before = scene.holder.current()
    scene.path.unlink()
    said = scene.holder.reload()
    assert scene.holder.current() is before
    assert isinstance(said, Refused)


def test_a_mended_file_is_taken_after_a_wrong_one(scene: Scene) -> None:
    scene.write("log: {level: loud}")
    scene.write("log: {level: error}")
    assert scene.holder.current().log.level == "error"


def test_what_is_fixed_at_the_start_stays_and_is_named(scene: Scene) -> None:
    scene.write("listen: {host: 0.0.0.0}\nstore: {url: 'memory://'}\nlog: {level: error}")
    current = scene.holder.current()
    assert (current.listen.host, current.store.url, current.log.level) == ("127.0.0.1", "sqlite:///ctxproxy.db", "error")
    assert scene.said == [Reloaded(changed=("log",), needs_restart=("listen", "store"))]


def test_the_command_line_still_goes_first(scene: Scene) -> None:
    scene.write("listen: {port: 9}")
    assert scene.holder.current().listen.port == 7
    assert scene.said == [Reloaded(changed=("log",), needs_restart=())]


async def test_the_hangup_signal_reloads(scene: Scene) -> None:
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()
    holder = Holder(scene.holder.current(), {})
    holder.on_hangup(loop, lambda _: heard.set())
    try:
        scene.path.write_text("log: {level: error}", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(10):
            await heard.wait()
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
    assert holder.current().log.level == "error"
