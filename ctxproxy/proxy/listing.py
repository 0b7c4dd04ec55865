"""Asks an upstream for its models when nothing is known of one: local servers tell their window there."""

from __future__ import annotations

import logging

from ctxproxy.config.schema import Settings
from ctxproxy.core.urls import join_url
from ctxproxy.errors import CtxproxyError
from ctxproxy.ports import Call, Headers
from ctxproxy.proxy.attempt import plain_body
from ctxproxy.proxy.identify import Target
from ctxproxy.proxy.state import State

log = logging.getLogger("ctxproxy")
WITHIN_S = 10.0
LISTING_BYTES = 4_194_304
"""The longest list of models that is read."""


async def ask_for_models(state: State, settings: Settings, target: Target, credentials: Headers) -> None:
    """Read the upstream's `/v1/models` with the request's own credential and learn the windows it states; never raises for what it answers."""
    headers = [*credentials, ("Accept", "application/json"), ("Accept-Encoding", "identity")]
    within_s = min(WITHIN_S, settings.upstream.first_byte_timeout_s)
    call = Call("GET", join_url(target.base_url, "/v1/models"), headers, None, within_s, within_s)
    try:
        response = await state.upstream(target.base_url).send(call)
        try:
            if response.status == 200:
                body = bytearray()
                async for chunk in response.chunks():
                    body += chunk
                    if len(body) > LISTING_BYTES:
                        return
                await state.windows.listed(target.origin, plain_body(response, bytes(body)))
        finally:
            await response.close()
    except CtxproxyError as error:
        log.debug("no list of models from %s: %s", target.origin, error.code)
