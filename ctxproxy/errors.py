"""Every deliberate error: one class per reaction of whoever catches it, with HTTP status, type and code in OpenAI's words.

Knows nothing of aiohttp: `as_body` gives the JSON value, the shell turns it into an answer.
"""

from __future__ import annotations

from typing import Any, ClassVar


class CtxproxyError(Exception):
    """An error that a client may be shown: what was wrong, where, and what would be right."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str | None] = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def as_body(self) -> dict[str, Any]:
        """The error in OpenAI's shape: `{"error": {message, type, param, code}}`."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class BadRequest(CtxproxyError):
    """The client's request breaks a rule of ours; the client has to change it."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class Unauthorized(CtxproxyError):
    """The admin API was called without its token."""

    status = 401
    type = "invalid_request_error"
    code = "invalid_api_key"


class Forbidden(CtxproxyError):
    """What an admin call asks for has not been granted."""

    status = 403
    type = "invalid_request_error"
    code = "forbidden"


class NotFound(CtxproxyError):
    """What an admin call names is not there."""

    status = 404
    type = "invalid_request_error"
    code = "not_found"


class Conflict(CtxproxyError):
    """What an admin call names is not unambiguous."""

    status = 409
    type = "invalid_request_error"
    code = "ambiguous"


class BodyTooLarge(CtxproxyError):
    """The body is larger than `listen.max_body_mb`."""

    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class UnsupportedEncoding(CtxproxyError):
    """The body has a Content-Encoding that cannot be undone, or does not decode."""

    status = 415
    type = "invalid_request_error"
    code = "unsupported_content_encoding"


class UpstreamUnreachable(CtxproxyError):
    """No connection to the upstream, or it broke before an answer began."""

    status = 502
    code = "upstream_unreachable"


class UpstreamTimeout(CtxproxyError):
    """The upstream did not connect, begin or go on within the configured time."""

    status = 504
    code = "upstream_timeout"


class StoreUnavailable(CtxproxyError):
    """The store does not answer; thin clients cannot be served without it."""

    status = 503
    code = "store_unavailable"


class EmbedderUnavailable(CtxproxyError):
    """No vectors can be had now; what is looked for is found by its words alone."""

    status = 503
    code = "embedder_unavailable"


class ConfigError(CtxproxyError):
    """The configuration is wrong; the start stops."""

    code = "invalid_config"


class WireError(CtxproxyError):
    """A body is not a chat completion request that we can read; it is passed on as it is."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_body"


class InvalidEdit(CtxproxyError):
    """A stage proposed an edit that parts a tool call from its result or touches a pinned message: a fault of ours."""

    code = "invalid_edit"
