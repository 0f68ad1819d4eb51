"""GA, preview and the contract file's hybrid, turned into one another by table.

Inside the product every event has GA's names and shapes. ``to_ga`` and ``from_ga`` convert at the edges;
each returns a list, because the preview's ``conversation.item.created`` stands for GA's ``added`` and
``done``. Fields that neither table names pass through untouched.

Sources: Azure OpenAI Realtime preview and GA references, and their migration guide.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from voiceapp.audio.formats import AudioFormat
from voiceapp.errors import AudioFormatError
from voiceapp.types import JsonObject


class Dialect(Enum):
    """How a service spells the protocol."""

    GA = "ga"
    PREVIEW = "preview"
    CONTRACT = "contract"
    """GA's event names with the preview's payloads, as in the published AsyncAPI description."""


class Half(Enum):
    """Who sends an event."""

    CLIENT = "client"
    SERVER = "server"


PREVIEW_NAMES: dict[str, str] = {
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "conversation.item.added": "conversation.item.created",
}
"""GA event name to preview event name; all others are the same."""

GA_NAMES = {preview: ga for ga, preview in PREVIEW_NAMES.items()}

GA_ONLY_EVENTS = frozenset(
    {
        "conversation.item.done",
        "input_audio_buffer.timeout_triggered",
        "input_audio_buffer.dtmf_event_received",
        "conversation.item.input_audio_transcription.segment",
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        "mcp_list_tools.failed",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
    }
)
"""Server events that a preview service never sends."""

CONTRACT_ONLY_EVENTS = frozenset({"conversation.created"})
"""Server events that only the contract file's service sends."""

_TRANSCRIPTION = {
    "session.update": "transcription_session.update",
    "session.created": "transcription_session.created",
    "session.updated": "transcription_session.updated",
}
_TRANSCRIPTION_GA = {preview: ga for ga, preview in _TRANSCRIPTION.items()}

_GA_ONLY_SESSION = frozenset({"type", "truncation", "parallel_tool_calls", "reasoning", "expires_at"})
_PREVIEW_ONLY = frozenset({"temperature"})
_PREVIEW_TEMPERATURE = 0.8

_Convert = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _format_to_ga(value: Any) -> Any:
    try:
        return AudioFormat.parse(value).to_ga()
    except AudioFormatError:
        return {"type": value}


def _format_to_preview(value: Any) -> Any:
    try:
        return AudioFormat.parse(value).beta_name
    except AudioFormatError:
        return value.get("type") if isinstance(value, dict) else value


def _turn_detection_to_ga(value: Any) -> Any:
    # The preview's clients also say "off" as {"type": "none"}.
    return None if isinstance(value, dict) and value.get("type") == "none" else value


_AUDIO_PATHS: tuple[tuple[str, tuple[str, str], _Convert, _Convert], ...] = (
    ("input_audio_format", ("input", "format"), _format_to_ga, _format_to_preview),
    ("input_audio_transcription", ("input", "transcription"), _same, _same),
    ("input_audio_noise_reduction", ("input", "noise_reduction"), _same, _same),
    ("turn_detection", ("input", "turn_detection"), _turn_detection_to_ga, _same),
    ("output_audio_format", ("output", "format"), _format_to_ga, _format_to_preview),
    ("voice", ("output", "voice"), _same, _same),
    ("speed", ("output", "speed"), _same, _same),
)
"""Preview field, place below GA's ``audio``, conversion to GA, conversion to preview."""

_PATHS_TO_PREVIEW: tuple[tuple[str, str], ...] = (
    ("audio.input.format.type", "input_audio_format"),
    ("audio.output.format.type", "output_audio_format"),
    *((f"audio.{side}.{leaf}", name) for name, (side, leaf), _, _ in _AUDIO_PATHS),
    ("output_modalities", "modalities"),
    ("session.max_output_tokens", "session.max_response_output_tokens"),
)

_NULLABLE_IN_CONTRACT = frozenset({
    "code", "param", "event_id", "previous_item_id", "metadata", "logprobs", "response_id", "response",
    "input_audio_transcription", "input_audio_noise_reduction", "turn_detection",
})  # fmt: skip


def detect(session: JsonObject) -> Dialect:
    """Return the dialect of a service from the ``session`` of its first frame, ``session.created``."""
    if "modalities" in session or "input_audio_format" in session:
        return Dialect.PREVIEW
    return Dialect.GA


# -- whole events ---------------------------------------------------------------------------------------


def to_ga(fields: JsonObject, source: Dialect, half: Half) -> list[JsonObject]:
    """Return the GA events that one event of ``source`` stands for; ``fields`` is not changed."""
    if source is Dialect.GA:
        return [fields]
    kind: str = fields["type"]
    event = _convert_payload(fields, half, _session_to_ga, _response_to_ga, _item_to_ga)
    # A session that is no object stays as it is, for the codec to refuse.
    session = event.get("session", {})
    if kind in _TRANSCRIPTION_GA:
        event["type"] = _TRANSCRIPTION_GA[kind]
        if isinstance(session, dict):
            event["session"] = {"type": "transcription", **session}
    elif kind in ("session.created", "session.updated", "session.update") and "session" in event:
        if isinstance(session, dict):
            event["session"] = {"type": "realtime", **session}
    elif source is Dialect.PREVIEW:
        event["type"] = GA_NAMES.get(kind, kind)
    if kind == "input_audio_buffer.dtmf_event_received" and "digit" in event:
        event["event"] = event.pop("digit")
    if half is Half.SERVER and source is Dialect.PREVIEW:
        return _with_item_done(kind, event)
    return [event]


def _with_item_done(kind: str, event: JsonObject) -> list[JsonObject]:
    """Add the ``conversation.item.done`` that a preview service leaves unsaid."""
    done = {
        "type": "conversation.item.done",
        "event_id": event.get("event_id", ""),
        "previous_item_id": event.get("previous_item_id"),
        "item": event.get("item"),
    }
    if kind == "conversation.item.created":
        item = event.get("item")
        begun = isinstance(item, dict) and item.get("status") == "in_progress"
        return [event] if begun else [event, done]
    if kind == "response.output_item.done":
        return [done, event]
    return [event]


def from_ga(fields: JsonObject, target: Dialect, half: Half) -> list[JsonObject]:
    """Return what a GA event is in ``target``, possibly nothing; ``fields`` is not changed."""
    if target is Dialect.GA:
        return [fields]
    kind: str = fields["type"]
    if target is Dialect.PREVIEW and half is Half.SERVER and kind in GA_ONLY_EVENTS:
        return []
    session = fields.get("session")
    event = _convert_payload(fields, half, _session_to_preview, _response_to_preview, _item_to_preview)
    if _is_transcription(session):
        # The contract file has no event of its own for the session's beginning.
        if target is Dialect.PREVIEW or kind != "session.created":
            event["type"] = _TRANSCRIPTION.get(kind, kind)
    elif target is Dialect.PREVIEW:
        event["type"] = PREVIEW_NAMES.get(kind, kind)
    if half is Half.SERVER and isinstance(session, dict) and not _is_transcription(session):
        # Preview services state the sampling temperature, which GA no longer has.
        event["session"].setdefault("temperature", _PREVIEW_TEMPERATURE)
    if kind == "error" and isinstance(event.get("error"), dict):
        event["error"] = _error_to_preview(event["error"])
    if target is Dialect.CONTRACT:
        event = _to_contract(event, of_transcription=_is_transcription(session))
    return [event]


def _error_to_preview(error: JsonObject) -> JsonObject:
    """Name the fields that an error speaks of as the client knows them."""
    result = dict(error)
    for name in ("message", "param"):
        if isinstance(result.get(name), str):
            for ga, preview in _PATHS_TO_PREVIEW:
                result[name] = result[name].replace(ga, preview)
    return result


def _is_transcription(session: Any) -> bool:
    return isinstance(session, dict) and session.get("type") == "transcription"


def _to_contract(event: JsonObject, *, of_transcription: bool) -> JsonObject:
    if of_transcription:
        # Its first event is described for conversations only, and its transcription is never null.
        session = dict(event["session"])
        if event["type"] == "session.created":
            session.pop("object", None)
        if session.get("input_audio_transcription", ...) is None:
            del session["input_audio_transcription"]
        event = {**event, "session": session}
    if event["type"] == "input_audio_buffer.dtmf_event_received" and "event" in event:
        event = {**event, "digit": event["event"]}
        event.setdefault("event_id", f"event_dtmf_{event.get('received_at', 0)}")
    pruned: JsonObject = _without_nulls(event)
    return pruned


def _without_nulls(value: Any) -> Any:
    """Drop nulls where the contract file does not allow them."""
    if isinstance(value, dict):
        return {
            name: _without_nulls(inner)
            for name, inner in value.items()
            if inner is not None or name in _NULLABLE_IN_CONTRACT
        }
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _convert_payload(
    fields: JsonObject,
    half: Half,
    session: Callable[[JsonObject], JsonObject],
    response: Callable[[JsonObject, Half], JsonObject],
    item: Callable[[JsonObject], JsonObject],
) -> JsonObject:
    event = dict(fields)
    if isinstance(event.get("session"), dict):
        event["session"] = session(event["session"])
    if isinstance(event.get("response"), dict):
        event["response"] = response(event["response"], half)
    if isinstance(event.get("item"), dict):
        event["item"] = item(event["item"])
    return event


# -- session --------------------------------------------------------------------------------------------


def _audio_to_ga(source: JsonObject, target: JsonObject) -> None:
    audio: JsonObject = {}
    for name, (side, leaf), convert, _ in _AUDIO_PATHS:
        if name in source:
            audio.setdefault(side, {})[leaf] = convert(target.pop(name))
    if audio:
        target["audio"] = audio


def _audio_to_preview(target: JsonObject) -> None:
    audio = target.pop("audio", None)
    if not isinstance(audio, dict):
        return
    for name, (side, leaf), _, convert in _AUDIO_PATHS:
        part = audio.get(side)
        if isinstance(part, dict) and leaf in part:
            target[name] = convert(part[leaf])


def _rename(fields: JsonObject, old: str, new: str) -> None:
    if old in fields:
        fields[new] = fields.pop(old)


def _modalities_to_ga(fields: JsonObject) -> None:
    _rename(fields, "modalities", "output_modalities")
    modalities = fields.get("output_modalities")
    if isinstance(modalities, list) and "audio" in modalities:
        fields["output_modalities"] = ["audio"]


def _modalities_to_preview(fields: JsonObject) -> None:
    _rename(fields, "output_modalities", "modalities")
    if fields.get("modalities") == ["audio"]:
        fields["modalities"] = ["audio", "text"]


def _session_to_ga(session: JsonObject) -> JsonObject:
    result = {name: value for name, value in session.items() if name not in _PREVIEW_ONLY}
    _modalities_to_ga(result)
    _rename(result, "max_response_output_tokens", "max_output_tokens")
    _audio_to_ga(session, result)
    return result


def _session_to_preview(session: JsonObject) -> JsonObject:
    result = {name: value for name, value in session.items() if name not in _GA_ONLY_SESSION}
    _modalities_to_preview(result)
    _rename(result, "max_output_tokens", "max_response_output_tokens")
    _audio_to_preview(result)
    return result


# -- responses and items --------------------------------------------------------------------------------


def _response_to_ga(response: JsonObject, half: Half) -> JsonObject:
    result = {name: value for name, value in response.items() if name not in _PREVIEW_ONLY}
    _modalities_to_ga(result)
    _rename(result, "max_response_output_tokens", "max_output_tokens")
    _audio_to_ga(response, result)
    return _with_items(result, _item_to_ga)


def _response_to_preview(response: JsonObject, half: Half) -> JsonObject:
    result = dict(response)
    _modalities_to_preview(result)
    _audio_to_preview(result)
    if half is Half.SERVER:
        result.setdefault("temperature", _PREVIEW_TEMPERATURE)
    return _with_items(result, _item_to_preview)


def _with_items(response: JsonObject, convert: Callable[[JsonObject], JsonObject]) -> JsonObject:
    for name in ("output", "input"):
        items = response.get(name)
        if isinstance(items, list):
            response[name] = [convert(item) if isinstance(item, dict) else item for item in items]
    return response


_PARTS_TO_GA = {"text": "output_text", "audio": "output_audio"}
_PARTS_TO_PREVIEW = {ga: preview for preview, ga in _PARTS_TO_GA.items()}


def _item_to_ga(item: JsonObject) -> JsonObject:
    result = _with_parts(item, _PARTS_TO_GA)
    if result.get("object") == "realtime.item":
        del result["object"]
    return result


def _item_to_preview(item: JsonObject) -> JsonObject:
    result = _with_parts(item, _PARTS_TO_PREVIEW)
    return result if result.get("type") == "item_reference" else {**result, "object": "realtime.item"}


def _with_parts(item: JsonObject, names: dict[str, str]) -> JsonObject:
    """Rename the content parts of an assistant's item; a user's are the same in every dialect."""
    result = dict(item)
    if item.get("role") == "assistant" and isinstance(item.get("content"), list):
        result["content"] = [
            {**part, "type": names.get(part["type"], part["type"])}
            if isinstance(part, dict) and isinstance(part.get("type"), str)
            else part
            for part in item["content"]
        ]
    return result
