"""Where a client that sends only what is new goes on after a restart: decided at the session's first request since then, and kept."""

from __future__ import annotations

import contextlib

from ctxproxy.config.policies import restored_turns
from ctxproxy.config.schema import Settings
from ctxproxy.core.carryover import Restore
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Session
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.state import State


async def restore_for(state: State, settings: Settings, policy: Policy, session: Session) -> Restore | None:
    """The cut that a session's prompts are made with; a new one where nobody has used it since this program was started, and not all is restored."""
    turns = restored_turns(settings, policy, session.key)
    if turns is None or session.last_used >= state.started or not session.tip:
        return await state.store.carryover.restore(session.key)
    restore = Restore(session.tip, turns)
    with contextlib.suppress(StoreUnavailable):  # a full disk: this answer is not kept either
        await state.store.carryover.put_restore(session.key, restore)
    return restore
