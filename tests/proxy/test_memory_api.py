"""What the admin API tells of memory files, and that erasing a session reaches them."""

from __future__ import annotations

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import got
from tests.proxy.test_background import talk
from tests.proxy.test_memory_files import DROPPING, folder_of, written
from tests.scripted_upstream import ScriptedUpstream


def folders(running: Running) -> list[str]:
    """The folders of sessions and users that are left."""
    return [path.name for path in folder_of(running).glob("*/*")]


async def test_the_sections_of_a_session_and_of_a_user_are_shown_day_by_day(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING)
    for session, user in (("first", "ann"), ("second", "ann"), ("third", "bob")):
        await running.chat(talk(40), session=session, headers={"X-User-Id": user})
    await running.settled()
    (day,) = (await got(running, "sessions/first/memory"))["data"]
    (section,) = day["sections"]
    assert section["session"] == "first"
    assert section["heading"].startswith("Trimmed ")
    assert section["text"]
    (day,) = (await got(running, "users/ann/memory"))["data"]
    assert [section["session"] for section in day["sections"]] == ["first", "second"]
    key = (await running.session("first")).key
    assert await got(running, f"users/{key.tenant[:8]}%3Aann/memory") == await got(running, "users/ann/memory")
    for path in ("users/nobody/memory", "users/00000000%3Aann/memory", "sessions/none/memory"):
        await got(running, path, status=404)


async def test_a_user_of_two_tenants_has_to_be_told_apart(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING)
    for key in ("sk-one", "sk-two"):
        await running.chat(talk(40), session="s", key=key, headers={"X-User-Id": "ann"})
    await running.settled()
    error = (await got(running, "users/ann/memory", status=409))["error"]
    assert error["message"].count(":ann") == 2


async def test_erasing_a_session_erases_its_sections(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING)
    for session in ("s", "t"):
        await running.chat(talk(40), session=session, headers={"X-User-Id": "ann"})
    await running.settled()
    await got(running, "sessions/s", "DELETE")
    ((day,),) = ((await got(running, "users/ann/memory"))["data"],)
    assert [section["session"] for section in day["sections"]] == ["t"]
    await got(running, "sessions/t", "DELETE")
    assert written(folder_of(running)) == []
    assert folders(running) == []


async def test_compacting_by_hand_is_noted_too(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 60_000}, summarizer={"kind": "extractive"})
    await running.chat(talk(40), session="s")
    await running.settled()
    await got(running, "sessions/s/manage", "POST")
    await running.settled()
    (day,) = (await got(running, "sessions/s/memory"))["data"]
    assert day["sections"][0]["heading"].startswith("Compacted by hand ")
