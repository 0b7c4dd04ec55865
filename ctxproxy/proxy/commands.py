"""Carries out a command in a user message and answers it in the shape that the request asked for: nothing goes upstream, nothing of it is kept."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from aiohttp import web
from msgspec import structs

from ctxproxy.config import own_keys
from ctxproxy.config.policies import Choice, choose
from ctxproxy.config.schema import Settings
from ctxproxy.core import completions, jsontext
from ctxproxy.core.command_answers import Standing, answer, compacted_line, context_lines, fact_lines, pin_lines, say, short, why_lines
from ctxproxy.core.commands import AskWhy, ClearContext, Command, Compact, ForgetText, Keep, SetConfig, ShowConfig, ShowContext, ShowFacts, ShowPins
from ctxproxy.core.effects import AppendMessages, Choose, Effect, OpenSession
from ctxproxy.core.language import language_of
from ctxproxy.core.memory_points import in_force_for_user
from ctxproxy.core.messages import leading_system
from ctxproxy.core.phrases import Phrase, phrase_of
from ctxproxy.core.pins import pins_tokens
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import SessionKey
from ctxproxy.core.sessions import to_store
from ctxproxy.core.why import Why
from ctxproxy.core.wire import ChatRequest
from ctxproxy.proxy import changes
from ctxproxy.proxy.identify import Caller, identify
from ctxproxy.proxy.middleware import NOTE
from ctxproxy.proxy.prepare import Prepared, prepare
from ctxproxy.proxy.state import State
from ctxproxy.proxy.tracing import trace

PINS_SHARE = 4
"""Pins may take a fourth of what a history may."""
MOST_FACTS = 1000
LEAST_CHARS = 2
"""What is shorter stands in nearly every message."""


async def answered(state: State, request: web.Request, settings: Settings, chat: ChatRequest, command: Command) -> web.Response:
    """The answer to the command that a request ends with; `chat` holds what stands before it. Raises StoreUnavailable and BadRequest."""
    caller = identify(request, chat, settings, state.secret)
    state.metrics.requests.labels("command").inc()
    request[NOTE] = f" session={caller.key.id if caller.key else '-'} command={type(command).__name__}"
    if caller.key is None:
        lines = [say("no_session", language_of(chat.messages), header=settings.sessions.header)]
    else:
        prepared = await _standing(state, settings, chat, caller, caller.key)
        planned = await asyncio.to_thread(plan, prepared.situation)
        lines = await _Orders(state, settings, caller.key, prepared, planned).carried_out(command)
    named = {settings.sessions.header: caller.key.name} if caller.key else {}
    return _completion(chat, answer(*lines), int(state.clock()), {**named, "X-Context-Actions": "command=1", "X-Context-Attempts": "0"})


async def _standing(state: State, settings: Settings, chat: ChatRequest, caller: Caller, key: SessionKey) -> Prepared:
    """What the next request would meet. A request that holds a command alone is a thin client's, unless it is known to be none."""
    if caller.mode == "auto" and leading_system(chat.messages) == len(chat.messages):
        session = await state.store.session(key)
        if session is not None and session.manner != "full":
            caller = structs.replace(caller, mode="append")
    return await prepare(state, settings, chat, caller, lambda: None)


def _completion(chat: ChatRequest, text: str, now: int, headers: dict[str, str]) -> web.Response:
    name = hashlib.blake2b(chat.body, digest_size=14).hexdigest()
    frame = {"id": f"chatcmpl-{name}", "created": now, "model": chat.model}
    if not chat.stream:
        body = jsontext.encode(completions.said(frame, text, chat.n))
        return web.Response(body=body, content_type="application/json", headers=headers)
    events = completions.said_in_parts(frame, text, chat.n, with_usage=chat.include_usage)
    return web.Response(body=b"".join(events), content_type="text/event-stream", charset="utf-8", headers={**headers, "Cache-Control": "no-cache"})


class _Orders:
    """Carries commands out on one session; each gives the lines of its answer."""

    def __init__(self, state: State, settings: Settings, key: SessionKey, prepared: Prepared, planned: Plan) -> None:
        self._state, self._settings, self._key = state, settings, key
        self._prepared, self._plan = prepared, planned
        self._situation = prepared.situation
        self._language = language_of(prepared.situation.reconciled.history)
        self._own = dict(prepared.session.overrides) if prepared.session else {}
        self._user = prepared.caller.user or (prepared.session.user if prepared.session else "")

    async def carried_out(self, command: Command) -> list[str]:
        match command:
            case ShowContext():
                standing = Standing(self._key.name, self._situation, self._plan, self._prepared.gauge.belief, len(self._own))
                lines = context_lines(standing, self._language)
            case ClearContext():
                lines = await self._clear()
            case Compact():
                lines = await self._compact()
            case ShowConfig(key=key):
                lines = self._config(key)
            case SetConfig(key=key, value=value):
                lines = await self._set(key, value)
            case Keep(text=text):
                lines = await self._pin(text) if text else [self._say("needs_text", command="/pin")]
            case ShowPins():
                lines = pin_lines(await self._state.store.pins(self._key), self._language)
            case ForgetText(text=text):
                lines = await self._about("/forget", text, self._forget)
            case AskWhy(text=text):
                lines = await self._about("/why", text, self._why)
            case ShowFacts(text=text):
                lines = await self._facts(text)
            case _:
                assert_never(command)
        return lines

    def _say(self, name: str, **values: object) -> str:
        return say(name, self._language, **values)

    def _opened(self) -> OpenSession:
        """The session has to be there for anything to be kept of it; that it is offered the recall tool is said when it is made."""
        return OpenSession(self._key, self._state.clock(), recall=self._prepared.bare is not None, user=self._prepared.caller.user)

    async def _keep(self, effects: Sequence[Effect]) -> None:
        await self._state.store.apply([self._opened(), *effects])

    async def _clear(self) -> list[str]:
        tips = self._situation.reconciled.tips
        if not tips:
            return [self._say("nothing_to_clear")]
        await self._keep(changes.clearing(self._key, self._prepared.session, tips))
        return [self._say("cleared", messages=len(tips))]

    async def _compact(self) -> list[str]:
        compacted = await changes.compacted(self._state, self._key, self._user, self._situation, [self._opened()])
        return [compacted_line(self._situation, compacted, self._language)]

    def _config(self, key: str) -> list[str]:
        name = own_keys.key_named(key) if key else ""
        if name is None:
            return self._unknown(key)
        rows = [row for row in self._in_force(self._own) if row.key == name or not name]
        lines = [f"{row.key}: {row.value} ({row.source})" for row in rows]
        return lines if name else [self._say("config"), *lines]

    async def _set(self, key: str, value: str) -> list[str]:
        name = own_keys.key_named(key)
        if name is None:
            return self._unknown(key)
        own = own_keys.with_key(self._settings, self._chosen(self._own), self._own, name, value)
        if isinstance(own, str):
            return [self._say("bad_value", key=name, reason=own)]
        await self._keep([Choose(self._key, overrides=own)])
        row = next(row for row in self._in_force(own) if row.key == name)
        return [self._say("set" if name in own else "reset", key=name, value=row.value, source=row.source)]

    def _unknown(self, key: str) -> list[str]:
        nearest = own_keys.nearest_key(key)
        hint = self._say("nearest", nearest=nearest) if nearest else ""
        return [self._say("unknown_key", key=short(key), nearest=hint, keys=", ".join(own_keys.NAMES))]

    def _chosen(self, own: dict[str, object]) -> Choice:
        return choose(self._settings, self._prepared.caller.profile or None, self._prepared.chat.model, self._key, own)

    def _in_force(self, own: dict[str, object]) -> list[own_keys.InForce]:
        return own_keys.in_force(self._settings, self._chosen(own), own)

    async def _pin(self, text: str) -> list[str]:
        texts, limit = (*self._situation.pins, text), self._situation.budget.limit
        tokens = pins_tokens(texts, self._situation.count, self._language)
        if tokens > limit // PINS_SHARE:
            return [self._say("pin_too_long", tokens=tokens, limit=limit, most=limit // PINS_SHARE)]
        pin = await changes.pinned(self._state, self._key, text, [self._opened()])
        return [self._say("pinned", number=pin.number)]

    async def _about(self, command: str, text: str, act: Callable[[Phrase], Awaitable[list[str]]]) -> list[str]:
        """What a command tells of the phrase that a text is."""
        if not text:
            return [self._say("needs_text", command=command)]
        try:
            phrase = phrase_of(text)
        except ValueError as error:
            return [self._say("bad_text", reason=error)]
        return await act(phrase)

    async def _forget(self, phrase: Phrase) -> list[str]:
        """Of every branch: also of those that the client is not on now. What is not in the log yet is written to it first."""
        if len(phrase.text) < LEAST_CHARS:
            return [self._say("bad_text", reason=f"is shorter than {LEAST_CHARS} characters")]
        store, session = self._state.store, self._prepared.session
        unknown = to_store(self._situation.reconciled, self._situation.counts, self._state.clock())
        if unknown:
            await self._keep([AppendMessages(self._key, unknown)])
        gone = session.forgotten if session else frozenset()
        tips = [tip for tip in await changes.tips_holding(store, self._key, phrase) if tip not in gone]
        pins = [pin for pin in await store.pins(self._key) if phrase.in_text(pin.text)]
        facts = [one.number for one in await store.facts.of(self._key) if phrase.in_text(f"{one.point.key} {one.point.value}")]
        carried = any(phrase.in_message(message) for message in self._situation.preload)
        if not (tips or pins or facts or carried):
            return [self._say("not_found", text=short(phrase.text))]
        if carried:
            await store.carryover.drop_preload(self._key)
        if facts:
            await store.carryover.drop_told(self._key)
        await self._state.eraser.messages(self._key, tips, [pin.number for pin in pins])
        for number in facts:
            await store.facts.drop(self._key, number)
        return [self._say("forgotten", messages=len(tips) + carried, pins=len(pins), facts=len(facts), text=short(phrase.text))]

    async def _facts(self, text: str) -> list[str]:
        """Of a known user what holds in all his sessions, else what the session tells."""
        facts = self._state.store.facts
        if self._user:
            found = await facts.of_user(self._key.tenant, self._user, MOST_FACTS)
        else:
            found = [one for one in await facts.of(self._key) if one.in_force]
        return fact_lines(in_force_for_user(found), text, self._language, of_user=bool(self._user))

    async def _why(self, phrase: Phrase) -> list[str]:
        session = self._prepared.session
        told = await trace(self._state, session, phrase.text) if session else Why(self._key.id, phrase.text, 0, (), 0, (), ())
        return why_lines(told, self._language)
