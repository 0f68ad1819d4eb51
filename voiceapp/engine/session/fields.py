"""What becomes of every field that a client may send: the engine's checks obey this table. Pure.

``FIELDS`` has a place for each object of the protocol, under its GA name; ``[kind]`` is for objects of one
``type``. A field that stands nowhere here is refused as ``unknown_parameter``. ``docs/engine.md`` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from voiceapp.engine.session import validation
from voiceapp.engine.session.validation import Check


class Effect(Enum):
    """What the engine does with a field."""

    HONOURED = "honoured"
    NONE = "no effect"
    """It is checked, and shown again where its object is, and changes nothing."""
    REFUSED = "refused"
    """With ``invalid_value``; ``null`` and an empty list, which ask for nothing, are taken."""
    UNKNOWN = "unknown"
    """Refused with ``unknown_parameter``, as the service does, whatever its value."""


@dataclass(frozen=True, slots=True)
class Field:
    """The verdict on one field, and a sentence with its reason."""

    effect: Effect
    reason: str = ""


_HONOURED: Final = Field(Effect.HONOURED)


def _honoured(*names: str, **remarks: str) -> dict[str, Field]:
    rows = dict.fromkeys(names, _HONOURED)
    return rows | {name: Field(Effect.HONOURED, remark) for name, remark in remarks.items()}


def _without_effect(**reasons: str) -> dict[str, Field]:
    return {name: Field(Effect.NONE, reason) for name, reason in reasons.items()}


def _refused(**reasons: str) -> dict[str, Field]:
    return {name: Field(Effect.REFUSED, reason) for name, reason in reasons.items()}


def _unknown(**reasons: str) -> dict[str, Field]:
    return {name: Field(Effect.UNKNOWN, reason) for name, reason in reasons.items()}


# -- what several places have ---------------------------------------------------------------------------

_NO_PROMPTS: Final = "No prompts are kept here: send the text as 'instructions'."
_NO_LOGPROBS: Final = "The recogniser gives no probabilities, so there is nothing to include."
_NO_EFFORT: Final = "Who thinks here does so as it is set up."
_OWN_NAMES: Final = _unknown(
    id="The engine names its sessions.",
    object="The engine says it itself.",
    expires_at="A session lasts for an hour.",
)
_PREVIEW_TEMPERATURE: Final = _unknown(
    temperature="GA has none. In the preview it is taken, and without effect: nothing here is left to chance."
)
_ITEM: Final = {
    **_honoured("id", "type"),
    **_without_effect(
        object="An item is one in any case.", status="What a client gives is complete when it comes."
    ),
}
_SPOKEN: Final = _without_effect(voice="There is one voice, which answers to every name.")
_FILTER: Final = _honoured("tool_names", "read_only")
_NOT_GIVEN: Final = "Only the engine makes such items."
_ASIDE: Final = "In a transcription session, which answers nobody, it has no effect."

# -- the table ------------------------------------------------------------------------------------------

_SESSION: Final[dict[str, dict[str, Field]]] = {
    "session": {
        **_honoured(
            "type", "output_modalities", "instructions", "tools", "tool_choice", "max_output_tokens",
            "truncation", "audio", "parallel_tool_calls",
        ),
        **_without_effect(
            model="It is chosen by the address.",
            tracing="Nothing is traced here.",
            reasoning=_NO_EFFORT,
        ),
        **_refused(prompt=_NO_PROMPTS, include=_NO_LOGPROBS),
        **_OWN_NAMES,
        **_PREVIEW_TEMPERATURE,
    },
    "session.audio": _honoured("input", "output"),
    "session.audio.input": {
        **_honoured("format", "transcription", "turn_detection"),
        **_without_effect(noise_reduction="Speech is found and recognised in the sound as it comes."),
    },
    "session.audio.input.noise_reduction": {
        **_without_effect(type="Speech is found and recognised in the sound as it comes."),
        **_unknown(strength="There is no noise reduction that could be stronger."),
    },
    "session.audio.input.transcription": {
        **_honoured(language="English alone is heard; any other language is refused."),
        **_without_effect(
            model="There is one recogniser.", prompt="The recogniser takes no words that it might hear."
        ),
        **_unknown(
            languages="English alone is heard.",
            keywords="The recogniser takes no words that it might hear.",
            delay="Words are told as soon as they are known.",
        ),
    },
    "session.audio.input.turn_detection[server_vad]": _honoured(
        "type", "threshold", "prefix_padding_ms", "silence_duration_ms",
        idle_timeout_ms=_ASIDE, create_response=_ASIDE, interrupt_response=_ASIDE,
    ),
    "session.audio.input.turn_detection[semantic_vad]": _honoured(
        "type", "eagerness", create_response=_ASIDE, interrupt_response=_ASIDE
    ),
    "session.audio.output": {**_honoured("format", "speed"), **_SPOKEN},
    "audio.format": _honoured("type", rate="Only 24000 Hz."),
    "audio.output.voice": _without_effect(id="There is one voice, which answers to every name."),
    "session.tracing": _without_effect(
        workflow_name="Nothing is traced here.",
        group_id="Nothing is traced here.",
        metadata="Nothing is traced here.",
    ),
    "session.truncation": _honoured("type", "retention_ratio", "token_limits"),
    "session.truncation.token_limits": _honoured("post_instructions"),
    "reasoning": _without_effect(effort=_NO_EFFORT),
    "session[transcription]": {
        **_honoured("type", "audio"),
        **_refused(include=_NO_LOGPROBS),
        **_OWN_NAMES,
        **_unknown(output_modalities="A transcription session answers nobody."),
    },
    "session[transcription].audio": _honoured("input"),
}  # fmt: skip

_TOOLS: Final[dict[str, dict[str, Field]]] = {
    "tools[function]": {
        **_honoured("type", "name", "description", "parameters"),
        **_without_effect(strict="Arguments are held to the parameters' schema in any case."),
    },
    "tools[mcp]": {
        **_honoured(
            "type", "server_label", "server_url", "authorization", "headers", "allowed_tools",
            "require_approval",
        ),
        **_without_effect(
            server_description="Whoever thinks reads the descriptions of the tools.",
            defer_loading="A server's tools are asked for at once.",
        ),
        **_refused(
            connector_id="There are no connectors here. Give the 'server_url'.",
            tunnel_id="There are no tunnels here. Give the 'server_url'.",
            allowed_callers="Tools are called by whoever thinks, and by nobody else.",
        ),
    },
    "tools[mcp].allowed_tools": _FILTER,
    "tools[mcp].require_approval": _honoured("always", "never"),
    "tools[mcp].require_approval.always": _FILTER,
    "tools[mcp].require_approval.never": _FILTER,
    "tool_choice[function]": _honoured("type", "name"),
    "tool_choice[mcp]": _honoured("type", "server_label", "name"),
}  # fmt: skip

_ITEMS: Final[dict[str, dict[str, Field]]] = {
    "item[message]": {
        **_ITEM,
        **_honoured("role", "content"),
        **_without_effect(phase="Nobody here speaks in phases."),
    },
    "content[input_text]": _honoured("type", "text"),
    "content[input_audio]": _honoured("type", "audio", "transcript"),
    "content[input_image]": _refused(
        type="The engine cannot look at an image: say in words ('input_text') what is in it."
    ),
    "content[item_reference]": _refused(
        type="An item is referred to in the 'input' of a response, and not within another."
    ),
    "content[output_text]": _honoured("type", "text"),
    "content[output_audio]": _honoured("type", "audio", "transcript"),
    "item[function_call]": {**_ITEM, **_honoured("call_id", "name", "arguments")},
    "item[function_call_output]": {**_ITEM, **_honoured("call_id", "output")},
    "item[mcp_approval_response]": {**_ITEM, **_honoured("approval_request_id", "approve", "reason")},
    "item[mcp_approval_request]": _refused(type=_NOT_GIVEN),
    "item[mcp_call]": _refused(type=_NOT_GIVEN),
    "item[mcp_list_tools]": _refused(type=_NOT_GIVEN),
    "response.input[item_reference]": _honoured("type", "id"),
}

_RESPONSE: Final[dict[str, dict[str, Field]]] = {
    "response": {
        **_honoured(
            "conversation", "output_modalities", "instructions", "audio", "tools", "tool_choice",
            "max_output_tokens", "metadata", "input", "parallel_tool_calls",
        ),
        **_without_effect(reasoning=_NO_EFFORT),
        **_refused(prompt=_NO_PROMPTS),
        **_PREVIEW_TEMPERATURE,
    },
    "response.audio": _honoured("output"),
    "response.audio.output": {**_honoured("format", "speed"), **_SPOKEN},
}  # fmt: skip

_EVENTS: Final[dict[str, dict[str, Field]]] = {
    "session.update": _honoured("type", "event_id", "session"),
    "transcription_session.update": _honoured("type", "event_id", "session"),
    "input_audio_buffer.append": _honoured("type", "event_id", "audio"),
    "input_audio_buffer.commit": _honoured("type", "event_id"),
    "input_audio_buffer.clear": _honoured("type", "event_id"),
    "output_audio_buffer.clear": _refused(
        type="Over a WebSocket the client plays the sound, and holds what is to be cleared."
    ),
    "conversation.item.create": _honoured("type", "event_id", "item", "previous_item_id"),
    "conversation.item.retrieve": _honoured("type", "event_id", "item_id"),
    "conversation.item.truncate": _honoured("type", "event_id", "item_id", "content_index", "audio_end_ms"),
    "conversation.item.delete": _honoured("type", "event_id", "item_id"),
    "response.create": _honoured("type", "event_id", "response"),
    "response.cancel": _honoured("type", "event_id", "response_id"),
}

_SECRETS: Final[dict[str, dict[str, Field]]] = {
    "client_secrets": _honoured("expires_after", "session"),
    "client_secrets.expires_after": _honoured("anchor", "seconds"),
}

FIELDS: Final[dict[str, dict[str, Field]]] = {
    **_EVENTS, **_SESSION, **_TOOLS, **_ITEMS, **_RESPONSE, **_SECRETS
}  # fmt: skip


# -- the checks -----------------------------------------------------------------------------------------


def checked(place: str, checks: Mapping[str, Check], *, required: Sequence[str] = ()) -> Check:
    """Return a check for the objects of ``place``, whose fields ``checks`` has as far as they are taken.

    Raises ``ValueError`` where the table takes others than ``checks`` has.
    """
    rows = FIELDS[place]
    taken = {name for name, row in rows.items() if row.effect in (Effect.HONOURED, Effect.NONE)}
    if taken != checks.keys():
        raise ValueError(f"{place}: the table and its checks differ in {sorted(taken ^ checks.keys())}")
    refused = {name: row.reason for name, row in rows.items() if row.effect is Effect.REFUSED}
    known = validation.fields({**checks, **dict.fromkeys(refused, _as_it_is)}, required=required)

    def check(value: Any, path: str) -> Any:
        for name, reason in refused.items():
            if isinstance(value, dict) and value.get(name) not in (None, []):
                raise _refusal(f"{path}.{name}", reason)
        return known(value, path)

    return check


def refuse_kind(place: str, kind: Any, path: str) -> None:
    """Raise ``ProtocolError`` where objects of this ``type`` are refused at ``place``: item or content."""
    row = FIELDS.get(f"{place}[{kind}]", {}).get("type")
    if row is not None and row.effect is Effect.REFUSED:
        raise _refusal(f"{path}.type", row.reason)


def _as_it_is(value: Any, path: str) -> Any:
    return value


def _refusal(path: str, reason: str) -> Exception:
    return validation.refuse("invalid_value", f"Invalid '{path}'. {reason}", path)
