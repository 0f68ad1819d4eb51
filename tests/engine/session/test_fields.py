"""What becomes of every field that a client may send: the table is whole, and the engine obeys it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from tests.parts.engine_parts import Client, bring, error_of, quiet, spoken_turn, start_reply
from voiceapp.engine.session.actions import Listen, StartReply
from voiceapp.engine.session.fields import FIELDS, Effect
from voiceapp.protocol.events import CLIENT_EVENTS, EXTRA
from voiceapp.text.provider import Finished, Said

AUDIO = base64.b64encode(quiet(200)).decode()
FUNCTION = {"type": "function", "name": "f"}
SERVER = {"type": "mcp", "server_label": "shop", "server_url": "https://x.y"}
MESSAGE = {"type": "message", "role": "user", "content": []}
REASONING = {"effort": "low"}

Wrap = Callable[[Any], tuple[str, dict[str, Any]]]


def in_session(*way: str, kind: str = "realtime", **beside: Any) -> Wrap:
    """Return what puts an object into a ``session.update``, below the names of ``way``."""

    def wrap(value: Any) -> tuple[str, dict[str, Any]]:
        for name in reversed(way):
            value = {name: value}
        return "session.update", {"session": {"type": kind, **beside, **value}}

    return wrap


def in_list(name: str, **beside: Any) -> Wrap:
    return lambda value: ("session.update", {"session": {"type": "realtime", **beside, name: [value]}})


def in_response(*way: str) -> Wrap:
    def wrap(value: Any) -> tuple[str, dict[str, Any]]:
        for name in reversed(way):
            value = {name: value}
        return "response.create", {"response": value}

    return wrap


def an_item(value: Any) -> tuple[str, dict[str, Any]]:
    return "conversation.item.create", {"item": value}


def content_of(role: str) -> Wrap:
    return lambda value: an_item({"type": "message", "role": role, "content": [value]})


def an_event(kind: str) -> Wrap:
    return lambda value: (kind, {name: inner for name, inner in value.items() if name != "type"})


def mcp(name: str) -> Wrap:
    return lambda value: in_list("tools")({**SERVER, name: value})


def require(name: str) -> Wrap:
    return lambda value: mcp("require_approval")({name: value})


VAD = "session.audio.input.turn_detection"
PLACES: dict[str, tuple[Wrap, str, dict[str, Any]]] = {
    "session": (in_session(), "session", {}),
    "session.audio": (in_session("audio"), "session.audio", {}),
    "session.audio.input": (in_session("audio", "input"), "session.audio.input", {}),
    "session.audio.input.noise_reduction": (
        in_session("audio", "input", "noise_reduction"), "session.audio.input.noise_reduction", {}),
    "session.audio.input.transcription": (
        in_session("audio", "input", "transcription"), "session.audio.input.transcription", {}),
    f"{VAD}[server_vad]": (in_session("audio", "input", "turn_detection"), VAD, {"type": "server_vad"}),
    f"{VAD}[semantic_vad]": (in_session("audio", "input", "turn_detection"), VAD, {"type": "semantic_vad"}),
    "session.audio.output": (in_session("audio", "output"), "session.audio.output", {}),
    "audio.format": (
        in_session("audio", "input", "format"), "session.audio.input.format", {"type": "audio/pcm"}),
    "audio.output.voice": (in_session("audio", "output", "voice"), "session.audio.output.voice", {}),
    "session.tracing": (in_session("tracing"), "session.tracing", {}),
    "session.truncation": (
        in_session("truncation"), "session.truncation", {"type": "retention_ratio", "retention_ratio": 0.5}),
    "session.truncation.token_limits": (
        lambda value: in_session("truncation")(
            {"type": "retention_ratio", "retention_ratio": 0.5, "token_limits": value}),
        "session.truncation.token_limits", {}),
    "reasoning": (in_session("reasoning"), "session.reasoning", {}),
    "session[transcription]": (in_session(kind="transcription"), "session", {}),
    "session[transcription].audio": (in_session("audio", kind="transcription"), "session.audio", {}),
    "tools[function]": (in_list("tools"), "session.tools[0]", FUNCTION),
    "tools[mcp]": (in_list("tools"), "session.tools[0]", SERVER),
    "tools[mcp].allowed_tools": (mcp("allowed_tools"), "session.tools[0].allowed_tools", {}),
    "tools[mcp].require_approval": (mcp("require_approval"), "session.tools[0].require_approval", {}),
    "tools[mcp].require_approval.always": (require("always"), "session.tools[0].require_approval.always", {}),
    "tools[mcp].require_approval.never": (require("never"), "session.tools[0].require_approval.never", {}),
    "tool_choice[function]": (
        in_session("tool_choice", tools=[FUNCTION]), "session.tool_choice",
        {"type": "function", "name": "f"}),
    "tool_choice[mcp]": (
        in_session("tool_choice", tools=[SERVER]), "session.tool_choice",
        {"type": "mcp", "server_label": "shop"}),
    "item[message]": (an_item, "item", MESSAGE),
    "content[input_text]": (content_of("user"), "item.content[0]", {"type": "input_text", "text": "Hi"}),
    "content[input_audio]": (content_of("user"), "item.content[0]", {"type": "input_audio"}),
    "content[input_image]": (content_of("user"), "item.content[0]", {"image_url": "data:image/png;base64,"}),
    "content[item_reference]": (content_of("user"), "item.content[0]", {"id": "item_1"}),
    "content[output_text]": (content_of("assistant"), "item.content[0]",
                             {"type": "output_text", "text": "Hi"}),
    "content[output_audio]": (content_of("assistant"), "item.content[0]", {"type": "output_audio"}),
    "item[function_call]": (an_item, "item", {"type": "function_call", "name": "f", "arguments": "{}"}),
    "item[function_call_output]": (
        an_item, "item", {"type": "function_call_output", "call_id": "call_x", "output": "1"}),
    "item[mcp_approval_response]": (
        an_item, "item",
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}),
    "item[mcp_approval_request]": (an_item, "item", {}),
    "item[mcp_call]": (an_item, "item", {}),
    "item[mcp_list_tools]": (an_item, "item", {}),
    "response.input[item_reference]": (
        lambda value: in_response("input")([value]), "response.input[0]",
        {"type": "item_reference", "id": "said"}),
    "response": (in_response(), "response", {}),
    "response.audio": (in_response("audio"), "response.audio", {}),
    "response.audio.output": (in_response("audio", "output"), "response.audio.output", {}),
}  # fmt: skip
"""How an object of each place is sent, the path under which an error names it, and what it must have."""

VALUES: dict[str, Any] = {
    "type": None, "event_id": "e", "session": {"type": "realtime"}, "audio": {}, "input": {}, "output": {},
    "item_id": "said", "previous_item_id": "root", "response_id": None, "content_index": 0, "audio_end_ms": 0,
    "item": MESSAGE, "response": {},
    "output_modalities": ["text"], "instructions": "Be kind.", "tools": [FUNCTION], "tool_choice": "none",
    "max_output_tokens": 9, "truncation": "disabled", "parallel_tool_calls": False, "model": "other",
    "tracing": "auto", "reasoning": REASONING, "prompt": {"id": "p", "variables": {}},
    "include": ["item.input_audio_transcription.logprobs"], "id": "mine", "object": "realtime.item",
    "expires_at": 5, "temperature": 0.7,
    "format": {"type": "audio/pcm"}, "transcription": {}, "turn_detection": None,
    "noise_reduction": {"type": "near_field"}, "strength": 0.5, "language": "en", "languages": ["en"],
    "keywords": ["Oslo"], "delay": "low", "threshold": 0.9, "prefix_padding_ms": 100,
    "silence_duration_ms": 300, "idle_timeout_ms": 6000, "create_response": False,
    "interrupt_response": False, "eagerness": "low", "speed": 1.1, "voice": "sage", "rate": 24000,
    "workflow_name": "w", "group_id": "g", "metadata": {"k": "v"}, "retention_ratio": 0.8,
    "token_limits": {}, "post_instructions": 500, "effort": "high",
    "name": "f", "description": "It does.", "parameters": {"type": "object"}, "strict": True,
    "server_label": "shop", "server_url": "https://x.y", "authorization": "t", "headers": {"X-Key": "k"},
    "allowed_tools": ["a"], "require_approval": "never", "server_description": "A shop.",
    "defer_loading": True, "connector_id": "connector_dropbox", "tunnel_id": "t",
    "allowed_callers": ["direct"], "tool_names": ["a"], "read_only": True,
    "always": {}, "never": {},
    "status": "incomplete", "role": "user", "content": [], "phase": "final_answer", "text": "Hi",
    "transcript": "Hi", "call_id": "call_x", "arguments": "{}",
    "approval_request_id": "mcpr_1", "approve": False, "reason": "No.", "conversation": "none",
}  # fmt: skip
"""A lawful value of each field by its name."""
ELSEWHERE: dict[tuple[str, str], Any] = {
    ("input_audio_buffer.append", "audio"): AUDIO,
    ("content[input_audio]", "audio"): AUDIO,
    ("content[output_audio]", "audio"): AUDIO,
    ("session.audio.input.noise_reduction", "type"): "far_field",
    ("session.audio.input.transcription", "prompt"): "Oslo",
    ("audio.format", "type"): "audio/pcmu",
    ("audio.output.voice", "id"): "sage",
    ("session", "tool_choice"): "auto",
    ("tool_choice[mcp]", "name"): "buy",
    ("item[function_call_output]", "output"): "1",
    ("response.input[item_reference]", "id"): "said",
    ("response", "input"): [],
    ("transcription_session.update", "session"): {},
}
"""What some fields are where they are something else."""
ROWS = [(place, name) for place, rows in FIELDS.items() if "client_secrets" not in place for name in rows]


def ready(kind: str, fields: dict[str, Any]) -> Client:
    """Return a client of the session that an event is for, whose conversation has what it refers to."""
    if kind.startswith("transcription") or fields.get("session", {}).get("type") == "transcription":
        return Client("transcription")
    client = Client()
    client.say("Hello")
    client.send("response.create")
    bring(client, Finished())
    part = {"type": "output_audio", "audio": AUDIO, "transcript": "Hi"}
    said = {"type": "message", "id": "said", "role": "assistant", "content": [part]}
    if "said" in str(fields):
        client.send("conversation.item.create", item=said)
    call = {"type": "function_call", "call_id": "call_x", "name": "f", "arguments": "{}"}
    client.send("conversation.item.create", item=call)
    client.events.clear()
    return client


def event_of(place: str, name: str) -> tuple[str, dict[str, Any], str]:
    """Return an event that sets one field (its type and the rest), and how an error names the field."""
    value = ELSEWHERE.get((place, name), VALUES[name])
    if place in CLIENT_EVENTS:
        needed = {one: ELSEWHERE.get((place, one), VALUES[one]) for one in FIELDS[place] if one != "event_id"}
        kind, fields = an_event(place)({**needed, name: value})
        return kind, fields, name
    wrap, path, needed = PLACES[place]
    if name == "type" and value is None:
        value = needed.get("type") or (place.partition("[")[2].rstrip("]") or "realtime")
    kind, fields = wrap({**needed, name: value})
    return kind, fields, f"{path}.{name}"


@pytest.mark.parametrize(("place", "name"), ROWS)
def test_every_field_is_taken_or_refused_as_the_table_says(place: str, name: str) -> None:
    kind, fields, path = event_of(place, name)
    client = ready(kind, fields)
    events = client.send(kind, **fields)
    errors = [event["error"] for event in events if event["type"] == "error"]
    row = FIELDS[place][name]
    if place == "item[mcp_approval_response]":
        # Nothing was asked here; where something was, tests of MCP calls look at the answer.
        assert [error["param"] for error in errors] == ["item.approval_request_id"]
    elif row.effect in (Effect.HONOURED, Effect.NONE):
        if kind not in ("response.cancel", "input_audio_buffer.commit"):
            assert not errors
        assert "invalid_value" not in [error["code"] for error in errors]
    else:
        (error,) = errors
        code = "invalid_value" if row.effect is Effect.REFUSED else "unknown_parameter"
        assert (error["code"], error["param"]) == (code, path)
        if row.effect is Effect.REFUSED and kind != "output_audio_buffer.clear":
            assert row.reason in error["message"]


def test_every_verdict_but_a_plain_one_has_its_reason() -> None:
    for rows in FIELDS.values():
        for row in rows.values():
            assert row.effect is Effect.HONOURED or row.reason.endswith(".") or "Give the" in row.reason


@pytest.mark.parametrize(
    ("place", "name"), [(place, name) for place, name in ROWS if FIELDS[place][name].effect is Effect.NONE]
)
def test_what_has_no_effect_changes_nothing(place: str, name: str) -> None:
    def done(kind: str, fields: dict[str, Any]) -> list[Any]:
        client = ready("", {})
        client.send(kind, **fields)
        spoken_turn(client)
        client.say("And now?")
        client.send("response.create")
        wanted = [action for action in client.actions if isinstance(action, Listen | StartReply)]
        # The name of the voice is handed on to the one voice that there is.
        return [action.request if isinstance(action, StartReply) else action for action in wanted]

    with_it = done(*event_of(place, name)[:2])
    wrap, _, needed = PLACES[place]
    assert with_it == done(*wrap(needed))


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": None, "include": None}, None),
        ({"include": []}, None),
        ({"tracing": None, "reasoning": None, "audio": {"input": {"noise_reduction": None}}}, None),
        ({"tracing": "often"}, "session.tracing"),
        ({"tracing": {"workflow": "w"}}, "session.tracing.workflow"),
        ({"reasoning": {"effort": "huge"}}, "session.reasoning.effort"),
        ({"truncation": "sometimes"}, "session.truncation"),
        ({"truncation": {"type": "retention_ratio"}}, "session.truncation.retention_ratio"),
        ({"truncation": {"type": "retention_ratio", "retention_ratio": 2}},
         "session.truncation.retention_ratio"),
        ({"truncation": {"type": "other", "retention_ratio": 1}}, "session.truncation.type"),
        ({"audio": {"input": {"transcription": {"language": "en-GB"}}}}, None),
        ({"audio": {"input": {"transcription": {"language": "EN"}}}}, None),
        ({"audio": {"input": {"transcription": {"language": ""}}}}, None),
        ({"audio": {"input": {"transcription": {"language": "de"}}}},
         "session.audio.input.transcription.language"),
        ({"audio": {"input": {"transcription": {"language": "ende"}}}},
         "session.audio.input.transcription.language"),
        ({"audio": {"output": {"voice": {"id": "sage", "more": 1}}}}, "session.audio.output.voice.more"),
    ],
)  # fmt: skip
def test_values_are_looked_at_also_where_they_change_nothing(
    change: dict[str, Any], param: str | None
) -> None:
    events = Client().update(**change)
    assert [event["error"]["param"] for event in events if event["type"] == "error"] == (
        [] if param is None else [param]
    )


@pytest.mark.parametrize("role", ["user", "system", "assistant"])
@pytest.mark.parametrize("place", ["item", "response.input[0]"])
def test_an_image_is_refused_in_words_wherever_it_comes(role: str, place: str) -> None:
    client = Client()
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}
    text = {"type": "output_text" if role == "assistant" else "input_text", "text": "Look!"}
    item = {"type": "message", "role": role, "content": [text, image]}
    if place == "item":
        error = error_of(client.send("conversation.item.create", item=item))
    else:
        error = error_of(client.send("response.create", response={"input": [item]}))
    assert (error["code"], error["param"]) == ("invalid_value", f"{place}.content[1].type")
    assert "cannot look at an image" in error["message"]
    assert not client.of_kind("conversation.item.added")


@pytest.mark.parametrize("kind", sorted(CLIENT_EVENTS))
@pytest.mark.parametrize("name", ["colour", EXTRA])
def test_a_field_beside_those_of_an_event_is_refused(kind: str, name: str) -> None:
    _, fields, _ = event_of(kind, "type")
    client = ready(kind, fields)
    error = error_of(client.send(kind, **fields, event_id="e", **{name: 1}))
    if kind == "output_audio_buffer.clear":
        assert error["param"] == "type"
    else:
        assert (error["code"], error["param"], error["event_id"]) == ("unknown_parameter", name, "e")


def test_a_ratio_says_how_much_of_a_long_conversation_is_kept() -> None:
    client = Client()
    limits = {"post_instructions": 10_000}
    client.update(truncation={"type": "retention_ratio", "retention_ratio": 0.5, "token_limits": limits})
    for number in range(4):
        client.say(f"{number} " + "x" * 8_000)
    said = []
    for _ in range(2):
        client.send("response.create", response={"output_modalities": ["text"]})
        said.append([one.text[0] for one in start_reply(client).request.history if isinstance(one, Said)])
        bring(client, Finished(), client.of_kind("response.created")[-1]["response"]["id"])
        for number in range(4, 6):
            client.say(f"{number} " + "x" * 8_000)
    # As long as all is within the limit nothing is dropped; then half of the limit is kept.
    assert said == [["0", "1", "2", "3"], ["4", "5"]]
