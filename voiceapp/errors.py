"""The exception tree; each with the HTTP status that goes with it, where that is not 400.

::

    VoiceAppError
    ├── Refusal                     who asks may not, or not now; each has its own status and close code
    │   └── QuotaExceeded           429, a token has used what it may (records.store.tokens)
    ├── ProtocolError               a rule of a protocol was broken
    │   ├── LocalProtocolError      by this side
    │   ├── RemoteProtocolError     by the other side
    │   │   └── WireError           of NNRP (nnrp.layouts)
    │   └── DecodeError             by a message that cannot be read
    ├── AudioFormatError            samples do not fit their format
    ├── ToolError                   becomes a call's output
    │   ├── UnknownTool
    │   ├── InvalidArguments
    │   └── ToolFailed
    ├── UpstreamError               the Realtime service cannot be used
    │   ├── UpstreamRefused
    │   ├── UpstreamClosed
    │   └── UpstreamTimeout
    ├── TextEngineError             502, a text provider failed
    │   ├── TextRequestError        400, a request for text cannot be met as it is
    │   ├── TextModelNotFound       404
    │   ├── ModelHostAmbiguous      409
    │   ├── TextEngineLimited       429
    │   ├── TextEngineUnavailable   503
    │   └── TextEngineTimeout       504
    ├── ModelError                  a model of the engine is missing or broken (engine.inference.weights)
    ├── DocumentFault               an OpenAPI document is wrong (tools.http.schema)
    ├── StoreFull, StoreUnavailable  503, the records cannot be kept (records.store.writer)
    └── ConfigurationError          a setting is missing or wrong

Every error carries a stable ``code`` that goes on the wire and a sentence that a person can act on.
Messages never hold a transcript, a key or a payload.
"""

from __future__ import annotations


class VoiceAppError(Exception):
    """Base of everything this product raises on purpose.

    ``code`` is stable and machine readable, ``message`` is for people. ``status`` answers a request by HTTP
    that ends so, ``close_code`` closes a WebSocket that cannot begin.
    """

    default_code = "internal_error"
    status = 400
    close_code = 4010

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message


class Refusal(VoiceAppError):
    """Who asks may not, or not now, or not so: a request, a socket, or a session of a page."""

    default_code = "refused"

    def __init__(self, code: str, message: str, *, status: int = 400, close_code: int = 4010) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.close_code = close_code


class ProtocolError(VoiceAppError):
    """A rule of a protocol was broken: the Realtime API's, a contract's or NNRP's."""

    default_code = "protocol_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message, code=code)
        self.param = param


class LocalProtocolError(ProtocolError):
    """This side was about to break a rule: a fault of ours."""


class RemoteProtocolError(ProtocolError):
    """The other side broke a rule."""


class DecodeError(ProtocolError):
    """A message could not be read.

    ``code`` is one of the Realtime service's own: ``invalid_json``, ``invalid_event``, ``invalid_value``,
    ``missing_required_parameter``, ``invalid_type``. ``event_id`` is the message's own, where that much of
    it could be read.
    """

    default_code = "invalid_json"

    event_id: str | None = None


class AudioFormatError(VoiceAppError):
    """Samples do not fit the audio format that they claim to have."""

    default_code = "invalid_audio"


class ToolError(VoiceAppError):
    """A tool could not give a result; it becomes the call's output."""

    default_code = "tool_error"


class UnknownTool(ToolError):
    """The model asked for a tool that this assistant does not have."""

    default_code = "unknown_tool"


class InvalidArguments(ToolError):
    """The arguments of a call are not valid JSON of the tool's schema."""

    default_code = "invalid_arguments"


class ToolFailed(ToolError):
    """A tool ran and raised, or ran out of time."""

    default_code = "tool_failed"


class UpstreamError(VoiceAppError):
    """The Realtime service could not be used.

    ``final``: calling it again would not help. ``retry_after_s``: it asked not to be called before that.
    """

    default_code = "upstream_error"

    def __init__(
        self, message: str, *, code: str | None = None, final: bool = False, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message, code=code)
        self.final = final
        self.retry_after_s = retry_after_s


class UpstreamRefused(UpstreamError):
    """The service refused the connection (credentials, deployment, quota, address)."""

    default_code = "upstream_refused"


class UpstreamClosed(UpstreamError):
    """The service closed an established connection."""

    default_code = "upstream_closed"


class UpstreamTimeout(UpstreamError):
    """The service did not answer in time."""

    default_code = "upstream_timeout"


class TextEngineError(VoiceAppError):
    """A text provider failed to produce a reply, or a request for one was wrong.

    ``param`` names what was wrong with a request; it is empty where the request was right.
    """

    default_code = "text_engine_error"
    status = 502

    def __init__(self, message: str, *, code: str | None = None, param: str = "") -> None:
        super().__init__(message, code=code)
        self.param = param


class TextRequestError(TextEngineError):
    """A request for text is wrong, or cannot be met as it is."""

    default_code = "invalid_request"
    status = 400


class TextModelNotFound(TextEngineError):
    """The chat service does not know the model."""

    default_code = "text_engine_not_found"
    status = 404


class ModelHostAmbiguous(TextEngineError):
    """A user has connected several model hosts, and nobody could say which one is meant."""

    default_code = "model_host_ambiguous"
    status = 409


class TextEngineLimited(TextEngineError):
    """The chat service is at its limit."""

    default_code = "rate_limit_exceeded"
    status = 429


class TextEngineUnavailable(TextEngineError):
    """A user's own model is not connected, or has too much to do."""

    default_code = "model_host_absent"
    status = 503


class TextEngineTimeout(TextEngineError):
    """A text provider did not answer in time."""

    default_code = "text_engine_timeout"
    status = 504


class ConfigurationError(VoiceAppError):
    """A setting is missing or wrong."""

    default_code = "configuration_error"
