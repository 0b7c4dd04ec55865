"""Who is offered the recall tool: said with a session's first request and for good, and never where its calls could not be answered."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass

from ctxproxy.config.schema import Context
from ctxproxy.core import recall_tool
from ctxproxy.core.records import Session
from ctxproxy.core.wire import ChatRequest
from ctxproxy.proxy.identify import Caller

log = logging.getLogger("ctxproxy")
MOST_MODELS = 1000
"""How many models that take no tools are remembered: their names come from outside."""


@dataclass(slots=True)
class RecallUse:
    """What came of the tool in one request, so far."""

    calls: int = 0
    """Upstream calls beside those of the ladder."""
    answered: int = 0
    """Calls of the tool that were answered."""
    refused: bool = False
    """The upstream would not take it; the request was served without."""


class RecallOffers:
    """Decides for each request; remembers, as long as the program runs, which models take no tools."""

    def __init__(self) -> None:
        self._refusing: OrderedDict[tuple[str, str, bool], None] = OrderedDict()
        self._told_taken = False

    def is_offered(self, chat: ChatRequest, caller: Caller, session: Session | None) -> bool:
        """Whether this request carries the tool: as its session began, where it can; while plans are only watched, no request is changed."""
        wanted = session.recall if session else isinstance(caller.policy, Context) and caller.policy.recall_tool
        if not wanted or caller.key is None or caller.policy.observe:
            return False
        if recall_tool.is_taken(chat):
            self._tell_taken()
        return recall_tool.can_offer(chat) and _kind(chat, caller.target.origin) not in self._refusing

    def refused(self, chat: ChatRequest, origin: str) -> None:
        """Note that an upstream takes a model's requests without the tool only; `chat` is the client's own."""
        kind = _kind(chat, origin)
        if kind not in self._refusing:
            log.warning("the recall tool is not offered to %s any more: the upstream refused a request for it", ascii(chat.model))
        self._refusing[kind] = None
        if len(self._refusing) > MOST_MODELS:
            self._refusing.popitem(last=False)

    def _tell_taken(self) -> None:
        if not self._told_taken:
            log.warning("a client has a tool named %s itself: the recall tool is not offered beside it", recall_tool.NAME)
        self._told_taken = True


def _kind(chat: ChatRequest, origin: str) -> tuple[str, str, bool]:
    """A model may take tools and yet not one more than it has (OpenAI takes 128)."""
    return origin, chat.model, recall_tool.has_tools(chat)
