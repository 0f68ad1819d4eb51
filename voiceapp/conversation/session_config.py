"""What a conversation tells the service about itself, and how it reads the service's objects; pure."""

from __future__ import annotations

from typing import Any

import msgspec

from voiceapp.audio.formats import AudioFormat
from voiceapp.config import AssistantConfig
from voiceapp.conversation.actions import Action, FinishedResponse, KeptItem, to_browser
from voiceapp.errors import AudioFormatError
from voiceapp.protocol.events import Object
from voiceapp.tools.functions import name_like

HISTORY_CHARS = 60_000
"""Text of earlier turns that a new connection is given: about half of the smallest model's context."""


def session_update(assistant: AssistantConfig, tools: list[Object], transcription_model: str) -> Object:
    """Return the GA ``session`` of the first ``session.update``."""
    transcription = assistant.transcription
    if transcription is not None and transcription_model:
        transcription = {"model": transcription_model, **transcription}
    output: Object = {"format": assistant.output_format.to_ga()}
    if assistant.voice:
        output["voice"] = assistant.voice
    session: Object = {
        "type": "realtime",
        "output_modalities": ["audio"],
        "instructions": assistant.instructions,
        "audio": {
            "input": {
                "format": assistant.input_format.to_ga(),
                "transcription": transcription or None,
                "turn_detection": assistant.turn_detection,
            },
            "output": output,
        },
        "tools": tools,
    }
    if assistant.max_output_tokens is not None:
        session["max_output_tokens"] = assistant.max_output_tokens
    return session


def with_server_vad(assistant: AssistantConfig) -> AssistantConfig:
    """Return the same assistant with silence as the end of a turn."""
    kept = {
        name: value
        for name, value in (assistant.turn_detection or {}).items()
        if name in ("create_response", "interrupt_response")
    }
    return msgspec.structs.replace(assistant, turn_detection={"type": "server_vad", **kept})


def without_instructions(event: Object) -> Object:
    """Return a session event without the operator's text, which is not the page's business."""
    session = event.get("session") or {}
    hidden = {"instructions", "tools", "prompt"}
    return {**event, "session": {name: value for name, value in session.items() if name not in hidden}}


def echoed_format(side: Any, wanted: AudioFormat) -> AudioFormat:
    """Return the format that the service says it uses, or the wanted one where it says nothing."""
    if not isinstance(side, dict) or "format" not in side:
        return wanted
    try:
        return AudioFormat.parse(side["format"])
    except AudioFormatError:
        return wanted


def read_item(item: KeptItem, raw: Object, *, captions: bool) -> None:
    """Bring ``item`` up to what the service says of it; text that is there already is not lost."""
    item.type = str(raw.get("type") or item.type)
    item.role = str(raw.get("role") or item.role)
    item.status = str(raw.get("status") or item.status)
    item.name = str(raw.get("name") or item.name)
    item.call_id = str(raw.get("call_id") or item.call_id)
    item.arguments = str(raw.get("arguments") or item.arguments)
    texts: list[str] = []
    for part in raw.get("content") or []:
        kind = str(part.get("type", ""))
        if "audio" in kind:
            item.modality = "audio"
        texts.append(str(part.get("text") or part.get("transcript") or ""))
    if item.type == "function_call_output":
        texts = [str(raw.get("output") or "")]
    text = " ".join(part for part in texts if part)
    if text:
        item.generated_text = text
    if item.role == "user" and item.modality == "audio" and not item.transcript_status and captions:
        item.transcript_status = "completed" if text else "pending"
    item.raw = _without_audio(raw)


def _without_audio(raw: Object) -> Object:
    """Return an item without its sound, and a list of tools as their names: descriptions have no end."""
    if isinstance(raw.get("tools"), list):
        raw = {**raw, "tools": [tool.get("name") for tool in raw["tools"] if isinstance(tool, dict)]}
    content = raw.get("content")
    if not isinstance(content, list):
        return raw
    return {**raw, "content": [{k: v for k, v in part.items() if k != "audio"} for part in content]}


def history(items: list[KeptItem]) -> list[Object]:
    """Return the client events that rebuild a conversation on a new connection.

    Answers come back as text, as the service accepts no assistant audio; only what was heard of them
    counts. A call without its output is left out, since services refuse half of the pair. A call that the
    service made of an MCP tool comes back as a function's, which every service takes. The newest turns win
    where not all fit.
    """
    items = [part for item in items for part in _as_function(item)]
    answered = {item.call_id for item in items if item.type == "function_call_output"}
    called = {item.call_id for item in items if item.type == "function_call"}
    creates: list[Object] = []
    room = HISTORY_CHARS
    for item in reversed(items):
        rebuilt = _rebuild(item, answered & called)
        if rebuilt is None:
            continue
        room -= len(item.generated_text) + len(item.arguments)
        if room < 0:
            break
        creates.append({"type": "conversation.item.create", "item": {"id": item.item_id, **rebuilt}})
    creates.reverse()
    return _whole_pairs(creates)


def _as_function(item: KeptItem) -> list[KeptItem]:
    """Return an item; for an MCP call that has ended, a function's call and its output."""
    if item.type != "mcp_call":
        return [item]
    output, error = item.raw.get("output"), item.raw.get("error")
    if output is None and not error:
        return []
    said = str(output) if output is not None else msgspec.json.encode({"error": error}).decode()
    # Services take ids of 32 characters at most.
    call_id = item.item_id[-32:]
    call = msgspec.structs.replace(item, type="function_call", call_id=call_id, name=name_like(item.name))
    output_id = f"out_{item.item_id[-28:]}"
    brought = KeptItem(item_id=output_id, type="function_call_output", call_id=call_id, generated_text=said)
    return [call, brought]


def _rebuild(item: KeptItem, pairs: set[str]) -> Object | None:
    if item.type == "message" and item.role in ("user", "assistant", "system"):
        text = item.generated_text if item.heard_text is None else item.heard_text
        if not text.strip():
            return None
        kind = "output_text" if item.role == "assistant" else "input_text"
        return {"type": "message", "role": item.role, "content": [{"type": kind, "text": text}]}
    if item.type == "function_call" and item.call_id in pairs:
        return {
            "type": "function_call",
            "call_id": item.call_id,
            "name": item.name,
            "arguments": item.arguments,
        }
    if item.type == "function_call_output" and item.call_id in pairs:
        return {"type": "function_call_output", "call_id": item.call_id, "output": item.generated_text}
    return None


def _whole_pairs(creates: list[Object]) -> list[Object]:
    """Drop outputs whose call did not fit."""
    calls = {c["item"]["call_id"] for c in creates if c["item"]["type"] == "function_call"}
    return [
        c for c in creates if c["item"]["type"] != "function_call_output" or c["item"]["call_id"] in calls
    ]


def finished_response(response: Object, latency_ms: int | None) -> FinishedResponse:
    """Return what is kept of a response that is over; ``latency_ms``: how long the user waited for it."""
    return FinishedResponse(
        response_id=str(response.get("id", "")),
        status=str(response.get("status", "")),
        status_details=response.get("status_details"),
        usage=response.get("usage"),
        metadata=response.get("metadata"),
        latency_ms=latency_ms,
    )


def lost_response(response_id: str, event_id: str, latency_ms: int | None) -> list[Action]:
    """Return the end of a response that a lost connection leaves behind."""
    details = {"type": "failed", "error": {"type": "server_error", "code": "upstream_lost"}}
    fields = {"id": response_id, "object": "realtime.response", "status": "failed", "output": []}
    response = {**fields, "status_details": details}
    done = {"type": "response.done", "event_id": event_id, "response": response}
    return [to_browser(done), finished_response(response, latency_ms)]


_INCOMPLETE = {
    "max_output_tokens": ("response_cut_short", "The answer reached its longest length.", "info"),
    "content_filter": ("response_filtered", "The service's content filter stopped the answer.", "warning"),
}
_INTERRUPTED = ("response_interrupted", "You spoke, so the answer was stopped.", "info")
_STOPPED = ("response_stopped", "The answer was stopped.", "info")
_BUSY = "The service is asked too much at the moment. Wait a little, then go on."
_FAILED = {
    "rate_limit_exceeded": _BUSY,
    "inference_rate_limit_exceeded": _BUSY,
    "insufficient_quota": "The service's quota is used up.",
    "content_filter": "The service's content filter refused the request.",
}

_EXPLAINED = ("text_engine_", "model_host_", "chat_not_configured", "too_many_model_hosts")
"""Beginnings of our own engine's codes, whose messages are sentences for people that say what to check."""


def response_notice(response: Object) -> tuple[str, str, str] | None:
    """Return (code, message, level) where a response did not end well."""
    details = response.get("status_details") or {}
    if response.get("status") == "incomplete":
        reason = str(details.get("reason", ""))
        return _INCOMPLETE.get(reason, ("response_incomplete", "The answer was cut short.", "warning"))
    if response.get("status") == "failed":
        error = details.get("error") or {}
        code = str(error.get("code") or error.get("type") or "unknown")
        told = _FAILED.get(code, f"The service could not answer ({code}). Ask again.")
        if code.startswith(_EXPLAINED) and (said := error.get("message")):
            told = str(said)[:300]
        return "response_failed", told, "error"
    if response.get("status") == "cancelled":
        by_speech = details.get("reason") == "turn_detected"
        return _INTERRUPTED if by_speech else _STOPPED
    return None
