"""Faults that a client orders: the engine fails at just the point that the script names."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
import websockets

from tests.parts.engine_parts import kinds, quiet, recording
from tests.parts.engine_server import (
    GA,
    PREVIEW,
    TIMEOUT_S,
    TRANSCRIPTION,
    EngineServer,
    RealtimeClient,
    connect,
)
from voiceapp.engine.server.faults import FaultScript, FaultScriptError, ReplyFault

TEXT = {"output_modalities": ["text"]}


@pytest.fixture(autouse=True)
def _faults_are_on(settings: Any) -> None:
    settings.VOICE = dataclasses.replace(settings.VOICE, engine_faults="1")


async def answer(client: RealtimeClient) -> dict[str, object]:
    await client.say("Tell me a story")
    await client.send("response.create", response=TEXT)
    response: dict[str, object] = (await client.until("response.done"))["response"]
    return response


def test_a_script_is_read() -> None:
    script = FaultScript.parse("rate_limit@2, drop@3,fail_transcription@1,expire@30,drop_after@9,rate_limits")
    assert script.replies == {2: ReplyFault.RATE_LIMIT, 3: ReplyFault.DROP}
    assert (script.lost_turns, script.life_s, script.drop_after) == ({1}, 30, 9)
    assert script.rate_limits
    assert FaultScript.parse("") == FaultScript()


@pytest.mark.parametrize(
    "text", ["stall", "stall@", "stall@0", "stall@x", "rain@1", "stall@-1", "expire@1e3"]
)
def test_a_script_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(FaultScriptError):
        FaultScript.parse(text)


async def test_faults_are_ordered_only_where_they_are_allowed(engine: EngineServer, settings: Any) -> None:
    for allowed, text in (("", "stall@1"), ("0", "stall@1"), ("1", "rain@1")):
        settings.VOICE = dataclasses.replace(settings.VOICE, engine_faults=allowed)
        with pytest.raises(websockets.InvalidStatus) as caught:
            async with connect(engine, f"{GA}&faults={text}"):
                pass
        assert caught.value.response.status_code == 400


async def test_the_setting_may_order_faults_for_every_session(engine: EngineServer, settings: Any) -> None:
    settings.VOICE = dataclasses.replace(settings.VOICE, engine_faults="rate_limit@1")
    for path, status in ((GA, "failed"), (f"{GA}&faults=rate_limit@2", "completed")):
        async with connect(engine, path) as client:
            assert (await answer(client))["status"] == status


async def test_a_rate_limit_fails_the_response_that_it_names(engine: EngineServer) -> None:
    async with connect(engine, f"{GA}&faults=rate_limit@2") as client:
        assert (await answer(client))["status"] == "completed"
        failed = await answer(client)
        assert failed["status"] == "failed"
        details = failed["status_details"]
        assert isinstance(details, dict)
        assert details["error"]["code"] == "rate_limit_exceeded"
        assert (await answer(client))["status"] == "completed"


@pytest.mark.parametrize("modality", ["text", "audio"])
async def test_filtered_content_ends_an_answer_in_the_middle(engine: EngineServer, modality: str) -> None:
    async with connect(engine, f"{GA}&faults=content_filter@1") as client:
        await client.say("Tell me a story")
        await client.send("response.create", response={"output_modalities": [modality]})
        response = (await client.until("response.done"))["response"]
        assert response["status_details"] == {"type": "incomplete", "reason": "content_filter"}
        assert response["output"][0]["status"] == "incomplete"


async def test_a_stalled_answer_goes_silent_until_it_is_cancelled(engine: EngineServer) -> None:
    async with connect(engine, f"{GA}&faults=stall@1") as client:
        await client.say("Tell me a story")
        await client.send("response.create", response=TEXT)
        await client.until("response.output_text.delta")
        # Whatever else would come, comes before the answer to this.
        await client.update(tool_choice="auto")
        assert len(client.of("response.output_text.delta")) == 1
        await client.send("response.cancel")
        await client.until("response.done")
        assert (await answer(client))["status"] == "completed"


@pytest.mark.parametrize("faults", ["drop@1", "drop_after@6"])
async def test_a_dropped_connection_ends_without_a_word(engine: EngineServer, faults: str) -> None:
    async with connect(engine, f"{GA}&faults={faults}") as client:
        with pytest.raises(websockets.ConnectionClosedError) as caught:
            await answer(client)
        assert caught.value.rcvd is None
        assert client.of("response.created")
        if faults == "drop_after@6":
            assert len(client.events) == 6


async def test_a_short_life_is_announced_and_ends_with_the_services_code(engine: EngineServer) -> None:
    async with connect(engine, f"{GA}&faults=expire@1") as client:
        with pytest.raises(websockets.ConnectionClosed) as caught:
            async with asyncio.timeout(TIMEOUT_S):
                while True:
                    await client.until_any()
        assert client.events[-1]["error"]["code"] == "session_expired"
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1001


async def test_words_are_lost_and_the_next_are_not(engine: EngineServer) -> None:
    async with connect(engine, f"{GA}&faults=fail_transcription@1") as client:
        detection = {"type": "server_vad", "create_response": False}
        await client.update(audio={"input": {"transcription": {}, "turn_detection": detection}})
        for _ in range(2):
            await client.speak(recording("joke") + quiet(1000))
        failed = await client.until(f"{TRANSCRIPTION}.failed")
        assert failed["error"]["code"] == "DeploymentNotFound"
        completed = await client.until(f"{TRANSCRIPTION}.completed")
        assert completed["item_id"] != failed["item_id"]


@pytest.mark.parametrize("path", [GA, PREVIEW, f"{PREVIEW}&dialect=contract"])
async def test_rate_limits_follow_a_response_only_where_they_are_ordered(
    engine: EngineServer, path: str
) -> None:
    async with connect(engine, f"{path}&faults=rate_limits") as client:
        await client.say("Add 2 and 3")
        await client.send("response.create")
        told = await client.until("rate_limits.updated")
        assert kinds(client.events)[-2] == "response.done"
        assert [limit["name"] for limit in told["rate_limits"]] == ["requests", "tokens"]
        used = client.events[-2]["response"]["usage"]["total_tokens"]
        assert told["rate_limits"][1]["limit"] - told["rate_limits"][1]["remaining"] == used
    async with connect(engine, path) as client:
        await client.say("Add 2 and 3")
        await client.send("response.create")
        await client.until("response.done")
        await client.send("response.cancel")
        await client.until("error")
        assert "rate_limits.updated" not in kinds(client.events)
