"""`POST plan`: what would be sent for a request, stage by stage, without a call and without a trace."""

from __future__ import annotations

import msgspec

from ctxproxy.config.policies import policy_for
from ctxproxy.core import inspect, jsontext, wire
from ctxproxy.core.commands import heard
from ctxproxy.core.messages import ROOT, chain, identity, leading_system
from ctxproxy.core.plan import plan
from ctxproxy.core.sessions import join_full
from ctxproxy.errors import BadRequest, WireError
from ctxproxy.proxy.identify import target_for
from ctxproxy.proxy.prepare import Ask, Decisions, situation_for
from ctxproxy.proxy.state import State


async def dry_run(state: State, body: dict[str, object]) -> dict[str, object]:
    """The plan for `{"messages", "model", "preset", "max_tokens"}`: here `max_tokens` is the prompt budget; raises BadRequest."""
    settings = state.settings()
    request = {key: value for key, value in body.items() if key not in ("preset", "max_tokens")}
    try:
        chat = heard(wire.parse(jsontext.encode(request)), enabled=settings.commands.enabled).chat
    except WireError as error:
        raise BadRequest(error.message, param="messages") from None
    preset = body.get("preset")
    if preset is not None and not isinstance(preset, str):
        raise BadRequest("preset must be the name of a preset or profile", param="preset")
    policy = policy_for(settings, preset or None, chat.model)
    most = body.get("max_tokens")
    if most is not None:
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise BadRequest("max_tokens must be a whole number from 1 on: the prompt budget in tokens", param="max_tokens")
        policy = msgspec.structs.replace(policy, max_tokens=most)
    gauge = await state.gauges.of(settings, policy, target_for(settings, chat.model).origin, chat.model)
    at = leading_system(chat.messages)
    rest = chat.messages[at:]
    fixed = await state.counts.fixed(chat.tools, chat.functions, chat.response_format, gauge.tokenizer)
    ask = Ask(chat.model, gauge, policy, chat.messages[:at], chat.max_output, fixed)
    reconciled = join_full(rest, chain(ROOT, [identity(m) for m in rest]), 0)
    situation = await situation_for(state, settings, ask, reconciled, Decisions())
    return inspect.plan_report(situation, plan(situation))
