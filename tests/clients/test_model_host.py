"""The client that connects a chat endpoint as a host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import openai
import pytest
from django.conf import settings
from jsonschema import Draft7Validator

from tests.parts.chat_server import calls, chat_server, chunk, ending, sse, text
from tests.parts.contracts import schema_of
from tests.parts.hosts import generate
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.chat_as_responses import ChatEvents
from voiceapp.clients.model_host import ModelHost
from voiceapp.text.model_host import messages

pytestmark = pytest.mark.django_db(transaction=True)


@asynccontextmanager
async def hosting(server: str, token: str, endpoint: str, **options: Any) -> AsyncIterator[list[str]]:
    """Run the product's own host against an endpoint, until it says that it is connected."""
    lines: list[str] = []
    connected = asyncio.Event()

    def tell(line: str) -> None:
        lines.append(line)
        connected.set()

    async with openai.AsyncOpenAI(base_url=endpoint, api_key="none", max_retries=0) as client:
        running = asyncio.create_task(
            ModelHost(client, "local", options.get("api", "auto"), tell).run(
                f"{server}/ws/model-host/", token
            )
        )
        try:
            await asyncio.wait_for(connected.wait(), PATIENCE_S)
            yield lines
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@pytest.fixture
def told_by_hosts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Everything that hosts send to the server, as it came."""
    told: list[dict[str, Any]] = []
    read = messages.read

    def reading(message: str) -> Any:
        told.append(json.loads(message))
        return read(message)

    monkeypatch.setattr(messages, "read", reading)
    return told


async def test_a_chat_endpoint_hosted_by_the_command_answers(
    server: str, token: str, told_by_hosts: list[dict[str, Any]]
) -> None:
    usage = chunk(usage={"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9})
    script = sse(
        text("Hosted "),
        text("words."),
        chunk({"index": 0, "delta": {}, "finish_reason": "stop"}),
        usage,
        "[DONE]",
    )
    async with chat_server(script=script) as chat, hosting(server, token, chat.base_url, api="chat"):
        answer = (await generate(server, token)).json()
    assert (answer["text"], answer["tokens_in"], answer["tokens_out"]) == ("Hosted words.", 7, 2)
    assert chat.requests[0]["model"] == "local"
    notified = [message for message in told_by_hosts if "id" not in message]
    contract = Draft7Validator(schema_of("client-notification.schema.json"))
    for message in notified:
        contract.validate(message)
    assert {message["method"] for message in notified} == {
        "initialized", "model/streamMetadata", "model/streamEvent",
    }  # fmt: skip


async def test_an_endpoint_without_responses_is_asked_for_chat(server: str, token: str) -> None:
    # The embedded engine's own chat address: a real service that has no Responses.
    endpoint = f"{server.replace('ws://', 'http://')}/openai/v1"
    async with openai.AsyncOpenAI(base_url=endpoint, api_key=settings.VOICE.engine_api_key) as client:
        ready = asyncio.Event()
        hosted = ModelHost(client, "voiceapp-embedded", "auto", lambda line: ready.set())
        running = asyncio.create_task(hosted.run(f"{server}/ws/model-host/", token))
        await asyncio.wait_for(ready.wait(), PATIENCE_S)
        asked = [{"role": "user", "content": "What is twelve times twelve?"}]
        answer = (await generate(server, token, messages=asked)).json()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert "144" in answer["text"]
    assert answer["provider"] == "model-host"


async def test_an_endpoint_that_fails_is_told_to_the_caller(
    server: str, token: str, told_by_hosts: list[dict[str, Any]]
) -> None:
    async with (
        chat_server(status="500 Oops", script=[b"{}"]) as chat,
        hosting(server, token, chat.base_url) as lines,
    ):
        answer = (await generate(server, token)).json()
    assert answer["code"] == "model_host_error"
    assert any("failed" in line for line in lines)
    [failed] = [message for message in told_by_hosts if message.get("method") == "model/requestFailed"]
    Draft7Validator(schema_of("client-notification.schema.json")).validate(failed)


async def test_calls_of_a_chat_endpoint_are_told_apart_whatever_their_index() -> None:
    """Some local servers number every call 0."""
    events = ChatEvents("m")
    whole = [{"index": 0, "id": name, "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    told = [event for one in whole for event in events.feed(calls(one))]
    told += [*events.feed(ending()), *events.finish()]
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert [(item["call_id"], item["name"], item["arguments"]) for item in done] == [
        ("a", "a", "{}"),
        ("b", "b", "{}"),
    ]
    assert told[-1]["response"]["status"] == "completed"


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (sse(text("It is four o'clock and")), "The chat endpoint broke off its answer."),
        (sse(text("<think>Hm.</think>"), ending("stop")), "The model said nothing."),
        (sse(text("It is "), {"detail": "x"}), "The chat endpoint failed."),
        (sse(text("Hm."), text("</think>Good day!"), ending("stop")), "Good day!"),
    ],
)
async def test_a_chat_endpoint_in_trouble_is_told_to_the_caller(
    server: str, token: str, script: list[bytes], answer: str
) -> None:
    async with (
        chat_server(script=script, refuses=("max_tokens",)) as chat,
        hosting(server, token, chat.base_url, api="chat"),
    ):
        found = (await generate(server, token)).json()
    if answer == "Good day!":
        assert found["text"] == answer
    else:
        assert found["code"] == "model_host_error"
        assert answer in found["detail"]


async def test_a_responses_stream_that_breaks_off_is_told_to_the_caller(server: str, token: str) -> None:
    begun = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "It is"}
    script = [f"event: {begun['type']}\ndata: {json.dumps(begun)}\n\n".encode()]
    async with (
        chat_server(script=script) as chat,
        hosting(server, token, chat.base_url, api="responses"),
    ):
        found = (await generate(server, token)).json()
    assert found["code"] == "model_host_error"
    assert "broke off" in found["detail"]
