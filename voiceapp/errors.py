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
    """A rule of the Realtime protocol was broken."""

    default_code = "protocol_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message, code=code)
        self.param = param


class DecodeError(ProtocolError):
    """A message could not be read as an event.

    ``code`` is one of the service's own: ``invalid_json``, ``invalid_event``, ``invalid_value``,
    ``missing_required_parameter``, ``invalid_type``.
    """

    default_code = "invalid_json"


class AudioFormatError(VoiceAppError):
    """Samples do not fit the audio format that they claim to have."""

    default_code = "invalid_audio"


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
    """A text provider failed to produce a reply."""

    default_code = "text_engine_error"


class ConfigurationError(VoiceAppError):
    """A setting is missing or wrong."""

    default_code = "configuration_error"
