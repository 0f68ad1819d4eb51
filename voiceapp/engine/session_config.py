"""The ``session`` object: its defaults, and updates to it, which merge deeply or are refused whole. Pure."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Final, Literal

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine import checks, tool_checks
from voiceapp.engine.turns import TurnSettings
from voiceapp.protocol.events import Object

Kind = Literal["realtime", "transcription"]

DEFAULT_INSTRUCTIONS: Final = (
    "You are a friendly voice assistant. Speak naturally, keep your answers short, and say so when "
    "you do not know something or cannot do it."
)

NOT_IN_A_CONVERSATION: Final = (
    "Passing a transcription session update event to a realtime session is not allowed."
)

_SERVER_VAD: Final[Object] = {
    "type": "server_vad",
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 200,
    "idle_timeout_ms": None,
    "create_response": True,
    "interrupt_response": True,
}
_SEMANTIC_VAD: Final[Object] = {
    "type": "semantic_vad",
    "eagerness": "auto",
    "create_response": True,
    "interrupt_response": True,
}

# Of turn detection, what a transcription session has no use for.
_OF_CONVERSATIONS: Final = ("idle_timeout_ms", "create_response", "interrupt_response")

_VAD_CHECKS: Final = {
    "server_vad": {
        "type": checks.text(),
        "threshold": checks.number(0, 1),
        "prefix_padding_ms": checks.number(0, 5_000, whole=True),
        "silence_duration_ms": checks.number(0, 10_000, whole=True),
        "idle_timeout_ms": checks.nullable(checks.number(5_000, 30_000, whole=True)),
        "create_response": checks.boolean,
        "interrupt_response": checks.boolean,
    },
    "semantic_vad": {
        "type": checks.text(),
        "eagerness": checks.one_of("low", "medium", "high", "auto"),
        "create_response": checks.boolean,
        "interrupt_response": checks.boolean,
    },
}


def _turn_detection(value: Any, path: str) -> Object:
    kind = checks.any_object(value, path).get("type", "server_vad")
    if not isinstance(kind, str) or kind not in _VAD_CHECKS:
        raise checks.invalid_value(kind, list(_VAD_CHECKS), f"{path}.type")
    checked: Object = checks.fields(_VAD_CHECKS[kind])(value, path)
    return {**checked, "type": kind}


_INPUT: Final = checks.fields(
    {
        "format": checks.audio_format,
        "transcription": checks.nullable(
            checks.fields(
                {
                    "model": checks.nullable(checks.text()),
                    "language": checks.nullable(checks.text()),
                    "prompt": checks.nullable(checks.text()),
                }
            )
        ),
        "noise_reduction": checks.nullable(checks.fields({"type": checks.one_of("near_field", "far_field")})),
        "turn_detection": checks.nullable(_turn_detection),
    }
)
_OUTPUT: Final = checks.fields(
    {"format": checks.audio_format, "voice": checks.voice, "speed": checks.number(0.25, 1.5)}
)


def _anything(value: Any, path: str) -> Any:
    return value


_SESSION: Final = checks.fields(
    {
        "type": checks.text(),
        # Clients repeat the model that they connected with; it cannot be changed.
        "model": checks.text(),
        "output_modalities": checks.modalities,
        "instructions": checks.text(),
        "tools": tool_checks.tools,
        "tool_choice": tool_checks.tool_choice,
        "max_output_tokens": checks.max_tokens,
        "tracing": _anything,
        "truncation": _anything,
        "prompt": checks.nullable(checks.any_object),
        "audio": checks.fields({"input": _INPUT, "output": _OUTPUT}),
        "include": _anything,
        "parallel_tool_calls": checks.boolean,
        "reasoning": checks.nullable(checks.any_object),
    }
)


_TRANSCRIPTION_SESSION: Final = checks.fields(
    {"type": checks.text(), "audio": checks.fields({"input": _INPUT}), "include": _anything}
)


class SessionConfig:
    """The settings of one session, always complete and valid."""

    def __init__(self, session_id: str, model: str, expires_at: int, kind: Kind = "realtime") -> None:
        self._model = model
        make = _conversation if kind == "realtime" else _transcription
        self._session = make(session_id, model, expires_at)

    def snapshot(self) -> Object:
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

    def update(self, change: Object, *, audio_was_spoken: bool, may_change_kind: bool) -> None:
        """Merge ``change`` in; where it is wrong raise ``ProtocolError`` and change nothing."""
        if "type" not in change:
            raise checks.missing("session.type")
        kind, mine = change["type"], self._session["type"]
        if kind not in ("realtime", "transcription"):
            raise checks.invalid_value(kind, ["realtime", "transcription"], "session.type")
        if kind != mine and (kind == "realtime" or not may_change_kind):
            other = "Passing a realtime session update event to a transcription session is not allowed."
            message = other if kind == "realtime" else NOT_IN_A_CONVERSATION
            raise checks.refuse("invalid_value", message, "session.type")
        old = self._session
        if kind != mine:
            old = _transcription(old["id"], self._model, old["expires_at"])
        checked: Object = (_SESSION if kind == "realtime" else _TRANSCRIPTION_SESSION)(change, "session")
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


def _conversation(session_id: str, model: str, expires_at: int) -> Object:
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


def _transcription(session_id: str, model: str, expires_at: int) -> Object:
    return {
        "type": "transcription",
        "object": "realtime.transcription_session",
        "id": session_id,
        "expires_at": expires_at,
        "include": None,
        # There is one recogniser, so nobody need choose a model before words come.
        "audio": {"input": _input({"model": model, "language": None, "prompt": ""})},
    }


def _input(transcription: Object | None) -> Object:
    return {
        "format": AudioFormat.PCM16.to_ga(),
        "transcription": transcription,
        "noise_reduction": None,
        "turn_detection": dict(_SERVER_VAD),
    }


def _check_conversation(new: Object, old: Object, audio_was_spoken: bool) -> None:
    """Check what depends on the conversation so far; the empty instructions are the default ones."""
    if audio_was_spoken and new["audio"]["output"]["voice"] != old["audio"]["output"]["voice"]:
        raise checks.refuse(
            "cannot_update_voice",
            "Cannot update a conversation's voice if assistant audio is present.",
            "session.audio.output.voice",
        )
    if new["instructions"] == "":
        new["instructions"] = DEFAULT_INSTRUCTIONS


def _merge(old: Object, new: Object) -> Object:
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


RESPONSE: Final = checks.fields(
    {
        "conversation": checks.one_of("auto", "none"),
        "output_modalities": checks.modalities,
        "instructions": checks.nullable(checks.text()),
        "audio": checks.fields({"output": _OUTPUT}),
        "tools": tool_checks.tools,
        "tool_choice": tool_checks.tool_choice,
        "max_output_tokens": checks.max_tokens,
        "metadata": checks.nullable(checks.metadata),
        "prompt": checks.nullable(checks.any_object),
        "input": checks.nullable(_anything),
        "parallel_tool_calls": checks.boolean,
        "reasoning": checks.nullable(checks.any_object),
    }
)
"""Checks the ``response`` of ``response.create``; ``input`` is checked as items."""
