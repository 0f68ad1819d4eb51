"""Several calls in one reply: which sentences ask for them, and how they come out of the engine."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from tests.parts.engine_parts import Client, error_of, kinds, speaking_client
from tests.parts.engine_server import EngineServer, connect
from voiceapp.text.brain.several import match_several
from voiceapp.text.provider import FunctionTool

TODAY = dt.date(2026, 11, 29)


def function(name: str, description: str, kind: str, parameter: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {parameter: {"type": kind}}, "required": [parameter]}
    return {"type": "function", "name": name, "description": description, "parameters": parameters}


FUNCTIONS = [
    function("get_weather", "The weather of a city", "string", "city"),
    function("set_timer", "Start a timer", "integer", "seconds"),
    function("search_notes", "Search through notes", "string", "query"),
]
TOOLS = tuple(FunctionTool(one["name"], one["description"], one["parameters"]) for one in FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("What is the weather in Paris and in Rome?", [{"city": "Paris"}, {"city": "Rome"}]),
        ("What is the weather in Paris and Rome?", [{"city": "Paris"}, {"city": "Rome"}]),
        (
            "What is the weather in Oslo and then set a timer for 5 minutes.",
            [{"city": "Oslo"}, {"seconds": 300}],
        ),
        ("Set a timer for one hour and ten minutes.", []),
        ("What is the weather in Paris, France?", []),
        ("What is the weather in Paris and tell me a joke.", []),
        ("Search my notes about cats and dogs.", []),
        ("What is the weather in Paris and in Paris?", []),
        ("Hello and goodbye.", []),
    ],
)
def test_a_sentence_asks_for_as_many_calls_as_it_names(text: str, calls: list[dict[str, Any]]) -> None:
    assert [match.arguments for match in match_several(text, TOOLS, TODAY)] == calls


async def test_several_calls_of_one_response_have_places_and_ids_of_their_own(engine: EngineServer) -> None:
    async with connect(engine) as client:
        await client.update(tools=FUNCTIONS, output_modalities=["text"])
        await client.say("What is the weather in Paris and in Rome?")
        await client.send("response.create")
        done = await client.until("response.done")
        calls = client.of("response.function_call_arguments.done")
        assert [call["output_index"] for call in calls] == [0, 1]
        assert [json.loads(call["arguments"]) for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]
        assert len({call["call_id"] for call in calls}) == 2
        assert [item["call_id"] for item in done["response"]["output"]] == [call["call_id"] for call in calls]
        for call, sky in zip(reversed(calls), ("blue", "grey"), strict=True):
            output = {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": f'{{"sky":"{sky}"}}',
            }
            await client.send("conversation.item.create", item=output)
        await client.send("response.create")
        said = (await client.until("response.done"))["response"]["output"][0]["content"][0]["text"]
        assert "blue" in said
        assert "grey" in said


async def test_a_client_can_want_one_call_at_a_time(engine: EngineServer) -> None:
    async with connect(engine) as client:
        await client.update(tools=FUNCTIONS, output_modalities=["text"])
        await client.say("What is the weather in Paris and in Rome?")
        await client.send("response.create", response={"parallel_tool_calls": False})
        assert len((await client.until("response.done"))["response"]["output"]) == 1


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("none", [None]),
        ("auto", ["get_weather"]),
        ("required", ["get_weather"]),
        ({"type": "function", "name": "set_timer"}, ["set_timer"]),
    ],
)
async def test_the_choice_of_a_tool_is_obeyed(
    engine: EngineServer, choice: Any, names: list[str | None]
) -> None:
    async with connect(engine) as client:
        await client.update(tools=FUNCTIONS, output_modalities=["text"])
        await client.say("What is the weather in Paris?")
        await client.send("response.create", response={"tool_choice": choice})
        output = (await client.until("response.done"))["response"]["output"]
        assert [item.get("name") for item in output] == names


async def test_responses_run_side_by_side_and_each_is_cancelled_by_its_id(engine: EngineServer) -> None:
    async with connect(engine) as client:
        await client.say("Tell me a story")
        await client.send("response.create")
        await client.until("response.output_audio.delta")
        for job in ("one", "two", "three"):
            text = [{"type": "input_text", "text": "Add 2 and 3"}]
            await client.send(
                "response.create",
                response={
                    "conversation": "none", "metadata": {"job": job}, "output_modalities": ["text"],
                    "input": [] if job == "three" else [{"type": "message", "role": "user", "content": text}],
                },
            )  # fmt: skip
        done = [(await client.until("response.done"))["response"] for _ in range(3)]
        assert {one["metadata"]["job"] for one in done} == {"one", "two", "three"}
        said = {one["metadata"]["job"]: one["output"][0]["content"][0]["text"] for one in done}
        assert said["one"] == said["two"] == "That is 5."
        assert said["three"] != "That is 5."
        story = client.of("response.created")[0]["response"]["id"]
        await client.send("response.cancel", response_id=story)
        cancelled = (await client.until("response.done"))["response"]
        assert (cancelled["id"], cancelled["status"]) == (story, "cancelled")
        assert cancelled["usage"]["output_token_details"]["audio_tokens"] > 0


def test_a_tool_that_is_not_there_cannot_be_chosen() -> None:
    client = Client()
    choice = {"type": "function", "name": "fly"}
    error = error_of(client.send("response.create", response={"tool_choice": choice}))
    assert (error["code"], error["param"]) == ("invalid_value", "response.tool_choice")


def test_a_response_keeps_the_voice_that_was_heard_unless_it_stays_outside() -> None:
    client = speaking_client()
    client.send("response.cancel")
    other = {"audio": {"output": {"voice": "marin"}}}
    assert error_of(client.send("response.create", response=other))["code"] == "cannot_update_voice"
    outside = client.send("response.create", response={**other, "conversation": "none"})
    assert kinds(outside) == ["response.created"]
