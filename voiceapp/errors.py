"""The exception tree.

Every error carries a stable ``code`` that goes on the wire and a sentence that a person can act on.
Messages never hold a transcript, a key or a payload.
"""

from __future__ import annotations


class VoiceAppError(Exception):
    """Base of everything this product raises on purpose.

    ``code`` is stable and machine readable, ``message`` is for people.
    """

    default_code = "internal_error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message


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
    ``missing_required_parameter``, ``invalid_type``.
    """

    default_code = "invalid_json"


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
    """The Realtime service could not be used."""

    default_code = "upstream_error"


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

    def __init__(self, message: str, *, code: str | None = None, param: str = "") -> None:
        super().__init__(message, code=code)
        self.param = param


class ConfigurationError(VoiceAppError):
    """A setting is missing or wrong."""

    default_code = "configuration_error"
