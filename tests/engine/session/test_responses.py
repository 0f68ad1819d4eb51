"""The engine's session, joined to nothing: responses and the functions that they call."""

from __future__ import annotations

import base64
from typing import Any

from tests.parts.engine_parts import (
    Client,
    bring,
    error_of,
    kinds,
    message,
    quiet,
    speaking_client,
    spoken,
    start_reply,
)
from voiceapp.engine.session.actions import Failed
from voiceapp.engine.session.items import within
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Finished,
    Returned,
    Said,
    TextDelta,
)

# -- responses ------------------------------------------------------------------------------------------


def test_one_response_at_a_time_writes_to_the_conversation() -> None:
    client = speaking_client()
    error = error_of(client.send("response.create"))
    assert error["code"] == "conversation_already_has_active_response"
    assert "resp_1" in error["message"]


def test_cancelling_nothing_is_an_error_that_clients_know() -> None:
    error = error_of(Client().send("response.cancel"))
    assert error["code"] == "response_cancel_not_active"
    assert error["message"].startswith("Cancellation failed")


def test_a_client_cancels_by_id_before_anything_was_said() -> None:
    client = Client()
    client.send("response.create")
    events = client.send("response.cancel", response_id="resp_1")
    assert kinds(events) == ["response.done"]
    assert events[0]["response"]["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}


def test_out_of_band_responses_leave_the_conversation_alone() -> None:
    client = speaking_client()
    client.send("conversation.item.create", item=message("fact"))
    events = client.send(
        "response.create",
        response={
            "conversation": "none",
            "output_modalities": ["text"],
            "instructions": "Classify.",
            "metadata": {"job": "7"},
            "input": [{"type": "item_reference", "id": "fact"}, {**message("q"), "id": "private"}],
        },
    )
    response = events[0]["response"]
    assert (response["conversation_id"], response["metadata"]) == (None, {"job": "7"})
    request = start_reply(client).request
    assert (request.instructions, request.spoken) == ("Classify.", False)
    assert request.history == (Said("user", "fact"), Said("user", "q"))
    events = bring(client, TextDelta("fine"), response["id"]) + bring(client, Finished(), response["id"])
    assert not [kind for kind in kinds(events) if kind.startswith("conversation.item")]
    assert error_of(client.send("conversation.item.retrieve", item_id="private"))["code"] == (
        "item_retrieve_invalid_item_id"
    )
    assert bring(client, Finished())[-1]["type"] == "response.done"


def test_a_response_without_instructions_of_its_own_has_the_sessions() -> None:
    client = Client()
    client.update(instructions="Be kind.")
    client.say("Hello")
    client.send("response.create", response={"instructions": None})
    assert start_reply(client).request.instructions == "Be kind."


def test_an_empty_input_is_an_empty_context() -> None:
    client = Client()
    client.say("forget me")
    client.send("response.create", response={"conversation": "none", "input": []})
    assert start_reply(client).request.history == ()


def test_many_responses_at_once_are_bounded() -> None:
    client = Client()
    for _ in range(8):
        client.send("response.create", response={"conversation": "none"})
    error = error_of(client.send("response.create", response={"conversation": "none"}))
    assert error["code"] == "rate_limit_exceeded"


def test_the_token_limit_makes_a_response_incomplete() -> None:
    client = Client()
    client.say("Talk")
    client.send("response.create", response={"output_modalities": ["text"], "max_output_tokens": 2})
    events = bring(client, TextDelta("one two three four"))
    response = events[-1]["response"]
    assert response["status"] == "incomplete"
    assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
    assert response["output"][0]["content"][0]["text"] == "one two "
    assert response["usage"]["output_tokens"] == 2


def test_the_token_limit_holds_for_speech() -> None:
    client = Client()
    client.say("Talk")
    client.send("response.create", response={"max_output_tokens": 10})
    events: list[dict[str, Any]] = []
    for number in range(4):
        events += bring(client, spoken(250, (f"w{number} ", number * 250.0, number * 250.0 + 250)))
    assert events[-1]["response"]["status"] == "incomplete"
    assert events[-1]["response"]["usage"]["output_tokens"] <= 10


def test_a_filtered_and_a_failed_reply_say_so() -> None:
    client = Client()
    client.send("response.create")
    response = bring(client, Finished("content_filter"))[-1]["response"]
    assert response["status_details"] == {"type": "incomplete", "reason": "content_filter"}
    client.send("response.create")
    response = bring(client, Failed("rate_limit_exceeded", "Too much."), "resp_2")[-1]["response"]
    assert response["status"] == "failed"
    assert response["status_details"]["error"]["code"] == "rate_limit_exceeded"


def test_a_long_conversation_loses_its_oldest_items_unless_that_is_disabled() -> None:
    client = Client()
    for number in range(12):
        client.say(f"{number} " + "x" * 12_000)
    client.send("response.create", response={"output_modalities": ["text"]})
    said = [item.text.split()[0] for item in start_reply(client).request.history if isinstance(item, Said)]
    assert said == ["3", "4", "5", "6", "7", "8", "9", "10", "11"]
    bring(client, Finished())
    client.update(truncation="disabled")
    client.send("response.create")
    assert len(start_reply(client).request.history) == 12


def test_a_call_and_its_output_are_dropped_together() -> None:
    said = (Called("c", "f", "x" * 400), Returned("c", "1"), Said("user", "y" * 40))
    assert within(said, 20) == (Said("user", "y" * 40),)
    assert within(said, 200) == said
    assert within(said, 1) == (Said("user", "y" * 40),)
    assert within(said[1:], 100) == said[1:]


# -- function calls -------------------------------------------------------------------------------------

TOOL = {
    "type": "function", "name": "get_weather", "description": "Weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}  # fmt: skip


def call_tool(client: Client, response_id: str = "resp_1", index: int = 0) -> list[dict[str, Any]]:
    events = bring(client, CallStarted(index, "c", "get_weather"), response_id)
    events += bring(client, CallArguments(index, '{"city":'), response_id)
    events += bring(client, CallArguments(index, ' "Paris"}'), response_id)
    return events + bring(client, CallFinished(index), response_id)


def test_a_function_call_has_the_services_order() -> None:
    client = Client()
    client.update(tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"})
    client.say("Weather in Paris?")
    client.send("response.create")
    request = start_reply(client).request
    assert (request.tool_choice, request.tools[0].name) == ("get_weather", "get_weather")
    events = call_tool(client) + bring(client, Finished())
    assert kinds(events) == [
        "response.output_item.added", "conversation.item.added",
        "response.function_call_arguments.delta", "response.function_call_arguments.delta",
        "response.function_call_arguments.done", "conversation.item.done", "response.output_item.done",
        "response.done",
    ]  # fmt: skip
    done = events[4]
    assert (done["name"], done["arguments"]) == ("get_weather", '{"city": "Paris"}')
    assert events[-1]["response"]["output"][0]["call_id"] == done["call_id"]
    output = {"type": "function_call_output", "call_id": done["call_id"], "output": '{"sky": "clear"}'}
    events = client.send("conversation.item.create", item=output)
    assert kinds(events) == ["conversation.item.added", "conversation.item.done"]
    assert "status" not in events[0]["item"]
    client.send("response.create")
    assert start_reply(client).request.history == (
        Said("user", "Weather in Paris?"),
        Called(done["call_id"], "get_weather", '{"city": "Paris"}'),
        Returned(done["call_id"], '{"sky": "clear"}'),
    )


def test_an_output_is_accepted_before_the_response_is_done() -> None:
    client = Client()
    client.send("response.create")
    events = call_tool(client)
    output = {"type": "function_call_output", "call_id": events[4]["call_id"], "output": "1"}
    assert kinds(client.send("conversation.item.create", item=output))[0] == "conversation.item.added"


def test_text_before_calls_is_kept_in_order() -> None:
    client = Client()
    client.send("response.create", response={"output_modalities": ["text"]})
    bring(client, TextDelta("Let me look."))
    call_tool(client)
    call_tool(client, index=1)
    output = bring(client, Finished())[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
    assert output[1]["call_id"] != output[2]["call_id"]


def test_a_preview_is_what_the_turn_will_start() -> None:
    client = Client()
    client.update(tools=[TOOL], instructions="Be kind.")
    client.say("Before")
    client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(1000)).decode())
    client.take(client.session.speech_started(0, 364))
    preview = client.session.preview("Hello.")
    item_id = client.take(client.session.speech_stopped(900))[0]["item_id"]
    client.take(client.session.transcript_final(item_id, "Hello."))
    started = start_reply(client)
    assert preview == (started.request, started.speaking)
