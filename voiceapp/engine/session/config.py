"""The ``session`` object: its defaults, and updates to it, which merge deeply or are refused whole. Pure."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Final, Literal

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session import fields, tool_validation, validation
from voiceapp.engine.turns.detector import TurnSettings
from voiceapp.types import JsonObject

Kind = Literal["realtime", "transcription"]

DEFAULT_INSTRUCTIONS: Final = (
    "You are a friendly voice assistant. Speak naturally, keep your answers short, and say so when "
    "you do not know something or cannot do it."
)

NOT_IN_A_CONVERSATION: Final = (
    "Passing a transcription session update event to a realtime session is not allowed."
)

_SERVER_VAD: Final[JsonObject] = {
    "type": "server_vad",
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 200,
    "idle_timeout_ms": None,
    "create_response": True,
    "interrupt_response": True,
}
_SEMANTIC_VAD: Final[JsonObject] = {
    "type": "semantic_vad",
    "eagerness": "auto",
    "create_response": True,
    "interrupt_response": True,
}

# Of turn detection, what a transcription session has no use for.
_OF_CONVERSATIONS: Final = ("idle_timeout_ms", "create_response", "interrupt_response")

_VAD_CHECKS: Final = {
    "server_vad": {
        "type": validation.text(),
        "threshold": validation.number(0, 1),
        "prefix_padding_ms": validation.number(0, 5_000, whole=True),
        "silence_duration_ms": validation.number(0, 10_000, whole=True),
        "idle_timeout_ms": validation.nullable(validation.number(5_000, 30_000, whole=True)),
        "create_response": validation.boolean,
        "interrupt_response": validation.boolean,
    },
    "semantic_vad": {
        "type": validation.text(),
        "eagerness": validation.one_of("low", "medium", "high", "auto"),
        "create_response": validation.boolean,
        "interrupt_response": validation.boolean,
    },
}


_VADS: Final = {
    kind: fields.checked(f"session.audio.input.turn_detection[{kind}]", checks)
    for kind, checks in _VAD_CHECKS.items()
}
_ENGLISH: Final = ("en", "eng", "english")
_TRACING: Final = fields.checked(
    "session.tracing",
    {
        "workflow_name": validation.text(),
        "group_id": validation.text(),
        "metadata": validation.nullable(validation.any_object),
    },
)
_TOKEN_LIMITS: Final = fields.checked(
    "session.truncation.token_limits",
    {"post_instructions": validation.number(0, float("inf"), whole=True)},
)
_RETENTION: Final = fields.checked(
    "session.truncation",
    {
        "type": validation.one_of("retention_ratio"),
        "retention_ratio": validation.number(0, 1),
        "token_limits": validation.nullable(_TOKEN_LIMITS),
    },
    required=["type", "retention_ratio"],
)
_REASONING: Final = validation.nullable(
    fields.checked("reasoning", {"effort": validation.one_of("minimal", "low", "medium", "high", "xhigh")})
)


def _turn_detection(value: Any, path: str) -> JsonObject:
    kind = validation.any_object(value, path).get("type", "server_vad")
    if not isinstance(kind, str) or kind not in _VAD_CHECKS:
        raise validation.invalid_value(kind, list(_VAD_CHECKS), f"{path}.type")
    checked: JsonObject = _VADS[kind](value, path)
    return {**checked, "type": kind}


def _language(value: Any, path: str) -> str:
    """Check the language that is to be heard: English, with or without a region."""
    name: str = validation.text()(value, path)
    if name and name.lower().replace("_", "-").split("-")[0] not in _ENGLISH:
        reason = f"Invalid '{path}'. Only English ('en') is understood here."
        raise validation.refuse("invalid_value", reason, path)
    return name


def _tracing(value: Any, path: str) -> Any:
    return _TRACING(value, path) if isinstance(value, dict) else validation.one_of("auto")(value, path)


def _truncation(value: Any, path: str) -> Any:
    if value is None:
        return "auto"
    if isinstance(value, dict):
        return _RETENTION(value, path)
    return validation.one_of("auto", "disabled")(value, path)


_INPUT: Final = fields.checked(
    "session.audio.input",
    {
        "format": validation.audio_format,
        "transcription": validation.nullable(
            fields.checked(
                "session.audio.input.transcription",
                {
                    "model": validation.nullable(validation.text()),
                    "language": validation.nullable(_language),
                    "prompt": validation.nullable(validation.text()),
                },
            )
        ),
        "noise_reduction": validation.nullable(
            fields.checked(
                "session.audio.input.noise_reduction", {"type": validation.one_of("near_field", "far_field")}
            )
        ),
        "turn_detection": validation.nullable(_turn_detection),
    },
)
_OUTPUT: Final = {
    "format": validation.audio_format, "voice": validation.voice, "speed": validation.number(0.25, 1.5)
}  # fmt: skip


def _anything(value: Any, path: str) -> Any:
    return value


_SESSION: Final = fields.checked(
    "session",
    {
        "type": validation.text(),
        # Clients repeat the model that they connected with; it cannot be changed.
        "model": validation.text(),
        "output_modalities": validation.modalities,
        "instructions": validation.text(),
        "tools": tool_validation.tools,
        "tool_choice": tool_validation.tool_choice,
        "max_output_tokens": validation.max_tokens,
        "tracing": validation.nullable(_tracing),
        "truncation": _truncation,
        "audio": fields.checked(
            "session.audio", {"input": _INPUT, "output": fields.checked("session.audio.output", _OUTPUT)}
        ),
        "parallel_tool_calls": validation.boolean,
        "reasoning": _REASONING,
    },
)


_TRANSCRIPTION_SESSION: Final = fields.checked(
    "session[transcription]",
    {
        "type": validation.text(),
        "audio": fields.checked("session[transcription].audio", {"input": _INPUT}),
    },
)


class SessionConfig:
    """The settings of one session, always complete and valid."""

    def __init__(self, session_id: str, model: str, expires_at: int, kind: Kind = "realtime") -> None:
        self._model = model
        make = _conversation if kind == "realtime" else _transcription
        self._session = make(session_id, model, expires_at)

    def snapshot(self) -> JsonObject:
        """Return the whole session object; later changes do not touch it."""
        shown = copy.deepcopy(self._session)
        turns = shown["audio"]["input"]["turn_detection"]
        if not self.converses and turns is not None:
            for name in _OF_CONVERSATIONS:
                turns.pop(name, None)
        for tool in shown.get("tools", ()):
            # Secrets for others: a session may be opened by a browser that does not know them.
            tool.pop("authorization", None)
            tool.pop("headers", None)
        return shown

    def update(self, change: JsonObject, *, audio_was_spoken: bool, may_change_kind: bool) -> None:
        """Merge ``change`` in; where it is wrong raise ``ProtocolError`` and change nothing."""
        if "type" not in change:
            raise validation.missing("session.type")
        kind, mine = change["type"], self._session["type"]
        if kind not in ("realtime", "transcription"):
            raise validation.invalid_value(kind, ["realtime", "transcription"], "session.type")
        if kind != mine and (kind == "realtime" or not may_change_kind):
            other = "Passing a realtime session update event to a transcription session is not allowed."
            message = other if kind == "realtime" else NOT_IN_A_CONVERSATION
            raise validation.refuse("invalid_value", message, "session.type")
        old = self._session
        if kind != mine:
            old = _transcription(old["id"], self._model, old["expires_at"])
        checked: JsonObject = (_SESSION if kind == "realtime" else _TRANSCRIPTION_SESSION)(change, "session")
        checked.pop("model", None)
        merged = _merge(old, checked)
        if kind == "realtime":
            _check_conversation(merged, old, audio_was_spoken)
        self._session = merged

    @property
    def converses(self) -> bool:
        """Whether the session answers; a transcription session only writes down what it hears."""
        return bool(self._session["type"] == "realtime")

    @property
    def input_format(self) -> AudioFormat:
        """Format of the microphone's audio."""
        return AudioFormat.parse(self._session["audio"]["input"]["format"])

    @property
    def turns(self) -> TurnSettings | None:
        """How turns are found; ``None`` is push-to-talk."""
        turns = TurnSettings.from_ga(self._session["audio"]["input"]["turn_detection"])
        if turns is None or self.converses:
            return turns
        return replace(turns, create_response=False, interrupt_response=False, idle_timeout_ms=None)

    @property
    def transcribes(self) -> bool:
        """Whether the client is told what the user said."""
        return self._session["audio"]["input"]["transcription"] is not None

    def __getitem__(self, name: str) -> Any:
        return self._session[name]

    def get(self, name: str, default: Any) -> Any:
        """Return a setting that the client may never have mentioned."""
        return self._session.get(name, default)


def _conversation(session_id: str, model: str, expires_at: int) -> JsonObject:
    # The order of keys is the service's own.
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": session_id,
        "model": model,
        "output_modalities": ["audio"],
        "instructions": DEFAULT_INSTRUCTIONS,
        "tools": [],
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "tracing": None,
        "truncation": "auto",
        "prompt": None,
        "expires_at": expires_at,
        "audio": {
            "input": _input(None),
            "output": {"format": AudioFormat.PCM16.to_ga(), "voice": "alloy", "speed": 1.0},
        },
        "include": None,
    }


def _transcription(session_id: str, model: str, expires_at: int) -> JsonObject:
    return {
        "type": "transcription",
        "object": "realtime.transcription_session",
        "id": session_id,
        "expires_at": expires_at,
        "include": None,
        # There is one recogniser, so nobody need choose a model before words come.
        "audio": {"input": _input({"model": model, "language": None, "prompt": ""})},
    }


def _input(transcription: JsonObject | None) -> JsonObject:
    return {
        "format": AudioFormat.PCM16.to_ga(),
        "transcription": transcription,
        "noise_reduction": None,
        "turn_detection": dict(_SERVER_VAD),
    }


def _check_conversation(new: JsonObject, old: JsonObject, audio_was_spoken: bool) -> None:
    """Check what depends on the conversation so far; the empty instructions are the default ones."""
    if audio_was_spoken and new["audio"]["output"]["voice"] != old["audio"]["output"]["voice"]:
        raise validation.refuse(
            "cannot_update_voice",
            "Cannot update a conversation's voice if assistant audio is present.",
            "session.audio.output.voice",
        )
    if new["instructions"] == "":
        new["instructions"] = DEFAULT_INSTRUCTIONS


def _merge(old: JsonObject, new: JsonObject) -> JsonObject:
    """Merge objects key by key; formats, tools and choices are replaced whole."""
    merged = dict(old)
    for name, value in new.items():
        before = old.get(name)
        if name == "turn_detection" and isinstance(value, dict):
            same_kind = isinstance(before, dict) and before["type"] == value["type"]
            defaults = _SERVER_VAD if value["type"] == "server_vad" else _SEMANTIC_VAD
            merged[name] = {**(before if same_kind and before else defaults), **value}
        elif name in ("audio", "input", "output", "transcription") and isinstance(value, dict):
            merged[name] = _merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = copy.deepcopy(value)
    return merged


RESPONSE: Final = fields.checked(
    "response",
    {
        "conversation": validation.one_of("auto", "none"),
        "output_modalities": validation.modalities,
        "instructions": validation.nullable(validation.text()),
        "audio": fields.checked(
            "response.audio", {"output": fields.checked("response.audio.output", _OUTPUT)}
        ),
        "tools": tool_validation.tools,
        "tool_choice": tool_validation.tool_choice,
        "max_output_tokens": validation.max_tokens,
        "metadata": validation.nullable(validation.metadata),
        "input": validation.nullable(_anything),
        "parallel_tool_calls": validation.boolean,
        "reasoning": _REASONING,
    },
)
"""Checks the ``response`` of ``response.create``; ``input`` is checked as items."""
