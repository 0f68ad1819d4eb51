"""Every event that the engine declares really comes, in every dialect, and no other."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from docs import generate
from tests.parts.contracts import Realtime
from tests.parts.engine_parts import Client, kinds, quiet
from voiceapp.engine.server.faults import FaultScript
from voiceapp.engine.session.actions import ReplyFact, Spoken
from voiceapp.engine.session.items import TimedWord
from voiceapp.engine.session.transcripts import Segment
from voiceapp.protocol import codec
from voiceapp.protocol.dialects import CONTRACT_ONLY_EVENTS, Dialect, Half, from_ga
from voiceapp.text.provider import CallArguments, CallFinished, CallStarted, Finished, TextDelta
from voiceapp.tools.mcp.messages import McpCalled, McpListed, McpNotListed, McpTool


def heard(client: Client) -> str:
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1000)).decode())
    client.take(client.session.speech_started(0, 64))
    client.take(client.session.speech_stopped(1000))
    return str(client.events[[*kinds(client.events)].index("input_audio_buffer.committed")]["item_id"])


def conversation() -> list[dict[str, Any]]:
    """Return the events of a conversation in which everything happens that can."""
    client = Client()
    client.events.clear()
    client.take(client.session.open(name_conversation=True))
    detection = {"type": "server_vad", "create_response": False, "idle_timeout_ms": 5000}
    client.update(audio={"input": {"turn_detection": detection, "transcription": {}}})
    item_id = heard(client)
    client.take(client.session.transcript_delta(item_id, "He"))
    client.take(client.session.transcript_final(item_id, "Hello."))
    client.say("Hi")
    client.send("response.create")
    word = (TimedWord("Hi", 0, 250),)
    client.take(client.session.reply_progressed("resp_1", Spoken(quiet(250), word)))
    client.take(client.session.reply_progressed("resp_1", Finished()))
    said = client.of_kind("response.output_item.added")[0]["item"]["id"]
    client.send("conversation.item.truncate", item_id=said, content_index=0, audio_end_ms=100)
    client.send("conversation.item.retrieve", item_id=said)
    client.send("conversation.item.delete", item_id=said)
    client.send("response.create", response={"output_modalities": ["text"]})
    call: list[ReplyFact] = [CallStarted(0, "c", "f"), CallArguments(0, "{}"), CallFinished(0)]
    for fact in (TextDelta("Hi"), *call, Finished()):
        client.take(client.session.reply_progressed("resp_2", fact))
    client.take(client.session.idle())
    client.take(client.session.key_pressed("5", 1))
    client.send("input_audio_buffer.clear")
    client.send("no.such.event")
    limits = FaultScript.parse("rate_limits").limits("e", client.of_kind("response.done")[0]["response"])
    return [*client.events, codec.to_fields(limits)]


def transcription() -> list[dict[str, Any]]:
    client = Client("transcription")
    client.send("session.update", session={"type": "transcription"})
    item_id = heard(client)
    client.take(client.session.transcript_final(item_id, "One.", [Segment("One.", 0, 500)]))
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1000)).decode())
    client.send("input_audio_buffer.commit")
    last = client.of_kind("input_audio_buffer.committed")[-1]["item_id"]
    client.take(client.session.transcript_failed(last, "DeploymentNotFound", "It failed."))
    return client.events


def mcp() -> list[dict[str, Any]]:
    client = Client()
    client.update(
        tools=[{"type": "mcp", "server_label": "s", "server_url": "https://h/", "require_approval": "never"}]
    )
    client.take(client.session.mcp_answered(McpNotListed("mcpl_1", "It is gone.")))
    client.update()
    client.take(client.session.mcp_answered(McpListed("mcpl_2", (McpTool("f"),))))
    client.send("response.create", response={"output_modalities": ["text"]})
    for index in (0, 1):
        call: list[ReplyFact] = [
            CallStarted(index, "c", "f"),
            CallArguments(index, "{}"),
            CallFinished(index),
        ]
        for fact in call:
            client.take(client.session.reply_progressed("resp_1", fact))
    client.take(client.session.mcp_answered(McpCalled("mcp_1", "Done.")))
    error = {"type": "http_error", "code": 500, "message": "It is broken."}
    client.take(client.session.mcp_answered(McpCalled("mcp_2", None, error)))
    return client.events


@pytest.mark.parametrize("make", [conversation, transcription, mcp])
def test_the_openai_packages_own_types_take_every_event(make: Callable[[], list[dict[str, Any]]]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
    for event in make():
        assert adapter.validate_python(event).type == event["type"]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_every_event_that_is_declared_comes_and_no_other(dialect: Dialect) -> None:
    events = [*conversation(), *transcription(), *mcp()]
    if dialect is not Dialect.CONTRACT:
        events = [event for event in events if event["type"] not in CONTRACT_ONLY_EVENTS]
    came = {one["type"] for event in events for one in from_ga(event, dialect, Half.SERVER)}
    assert came == generate.emitted(dialect)


def test_no_event_of_the_contract_is_out_of_reach_without_a_reason() -> None:
    reached = {name for dialect in Dialect for name in generate.emitted(dialect)}
    elsewhere = {name for name in Realtime().server if name not in reached}
    # These belong to WebRTC, whose part the page's relay plays.
    assert all(name.startswith("output_audio_buffer.") for name in elsewhere)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_client_events_that_are_accepted(dialect: Dialect) -> None:
    refused = set(Realtime().client) - generate.accepted(dialect)
    assert refused == {"output_audio_buffer.clear"}
