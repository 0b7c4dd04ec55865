"""What passes from one session to the next, in every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.core.carryover import Digest, Preload, Restore
from ctxproxy.core.effects import Forget, MoveTip, OpenSession
from ctxproxy.core.records import SessionKey
from ctxproxy.store import open_store
from tests.contract.conftest import Handles, no_damage
from tests.contract.samples import KEY, OTHER, begun, chain

NEW = SessionKey(KEY.tenant, "new talk")
DIGEST = Digest("ab" * 16, "zebra\ud83c, in short", 7, 2.0)
PRELOAD = Preload((b'{"role": "user", "content": "zebra"}', b"{}"), 2, 3.0)


async def test_a_digest_and_a_restore_are_kept_with_their_session_and_replaced(stores: Handles) -> None:
    await stores.write.carryover.put_digest(KEY, DIGEST)
    await stores.write.carryover.put_restore(KEY, Restore("ab" * 16, 3))
    assert (await stores.read.carryover.digest(KEY), await stores.read.carryover.restore(KEY)) == (None, None)
    await stores.write.apply([OpenSession(KEY, 1.0)])
    for digest, restore in ((DIGEST, Restore("ab" * 16, 3)), (Digest("", "", 0, 0.0), Restore("cd" * 16, 5))):
        await stores.write.carryover.put_digest(KEY, digest)
        await stores.write.carryover.put_restore(KEY, restore)
        assert await stores.read.carryover.digest(KEY) == digest
        assert await stores.read.carryover.restore(KEY) == restore
    await stores.write.erase(KEY)
    assert (await stores.read.carryover.digest(KEY), await stores.read.carryover.restore(KEY)) == (None, None)


async def test_the_first_preload_makes_the_session_and_stands(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0), OpenSession(OTHER, 1.0)])
    opened = OpenSession(NEW, 5.0, user="ann", recall=True)
    assert await stores.read.carryover.preload(NEW) is None
    assert await stores.write.carryover.begin(opened, PRELOAD, [KEY, OTHER]) == PRELOAD
    assert await stores.write.carryover.begin(opened, Preload((b"other",), 1, 9.0), [KEY]) == PRELOAD
    assert await stores.read.carryover.preload(NEW) == PRELOAD
    session = await stores.read.session(NEW)
    assert session and (session.user, session.recall, session.created) == ("ann", True, 5.0)


async def test_a_preload_that_tells_of_a_session_that_is_gone_is_not_kept(stores: Handles) -> None:
    assert await stores.write.carryover.begin(OpenSession(NEW, 5.0), PRELOAD, [KEY]) is None
    assert await stores.read.session(NEW) is not None


@pytest.mark.parametrize("how", ["erased", "forgotten", "dropped", "told"])
async def test_a_preload_goes_when_something_goes_that_it_tells_of(stores: Handles, how: str) -> None:
    messages = chain("a", "b")
    await stores.write.apply([*begun(KEY, messages), *begun(OTHER, messages)])
    await stores.write.carryover.put_digest(KEY, DIGEST)
    await stores.write.carryover.begin(OpenSession(NEW, 5.0), PRELOAD, [KEY])
    await stores.write.apply([Forget(OTHER, messages[0].tip)])
    assert await stores.read.carryover.preload(NEW) == PRELOAD
    if how == "dropped":
        await stores.write.carryover.drop_preload(NEW)
    elif how == "told":
        await stores.write.carryover.drop_told(OTHER)
        assert await stores.read.carryover.preload(NEW) == PRELOAD
        await stores.write.carryover.drop_told(KEY)
        await stores.write.carryover.drop_told(SessionKey(KEY.tenant, "none"))
    elif how == "erased":
        await stores.write.erase(KEY)
    else:
        await stores.write.apply([Forget(KEY, messages[0].tip)])
    assert await stores.read.carryover.preload(NEW) is None
    assert (await stores.read.carryover.digest(KEY) is None) is (how in ("erased", "forgotten"))
    assert await stores.write.carryover.begin(OpenSession(NEW, 6.0), PRELOAD, [OTHER]) == PRELOAD


async def test_a_preload_is_copied_with_its_sources_and_takes_the_place_of_none(stores: Handles) -> None:
    carryover, last = stores.write.carryover, SessionKey(KEY.tenant, "last")
    await stores.write.apply([*begun(KEY, chain("a")), *begun(OTHER, chain("a")), OpenSession(last, 6.0)])
    await carryover.begin(OpenSession(NEW, 5.0), PRELOAD, [KEY])
    await carryover.copy_preload(NEW, SessionKey(KEY.tenant, "none"))
    await carryover.copy_preload(OTHER, NEW)
    assert await stores.read.carryover.preload(NEW) == PRELOAD
    await carryover.copy_preload(NEW, last)
    assert await stores.read.carryover.preload(last) == PRELOAD
    await stores.write.erase(NEW)
    assert await stores.read.carryover.preload(last) == PRELOAD
    await stores.write.erase(KEY)
    assert await stores.read.carryover.preload(last) is None


async def test_a_list_that_is_not_carried_out_leaves_all_of_it_as_it_was(stores: Handles) -> None:
    messages = chain("a", "b")
    await stores.write.apply(begun(KEY, messages))
    await stores.write.carryover.put_digest(KEY, DIGEST)
    assert not await stores.write.apply([Forget(KEY, messages[0].tip), MoveTip(KEY, "ff" * 16, "", required=True)])
    assert await stores.read.carryover.digest(KEY) == DIGEST


async def test_nothing_of_an_erased_session_is_left_in_the_file_of_those_that_began_with_it(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/talks.db", on_damage=no_damage)
    await store.apply([OpenSession(KEY, 1.0)])
    await store.carryover.put_digest(KEY, DIGEST)
    await store.carryover.begin(OpenSession(NEW, 5.0), PRELOAD, [KEY])
    await store.erase(KEY)
    left = contents(tmp_path)
    await store.close()
    assert not any(b"zebra" in raw for raw in left)


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]
