"""The chat addresses over real sockets, with the clients that others wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from django.conf import settings

from tests.parts.chat_server import STOP, USAGE, chat_behind, sse, text
from tests.parts.gateway_requests import HELLO, SCHEMA
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.records.models import TokenUsage
from voiceapp.text.chat.result import Collector

pytestmark = pytest.mark.django_db(transaction=True)

TIME_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in a city",
        "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        },
    },
}  # fmt: skip


@pytest.fixture(params=["v1", "azure"])
async def sdk(request: pytest.FixtureRequest, site: str) -> AsyncIterator[openai.AsyncOpenAI]:
    """The official client at both addresses."""
    key = settings.VOICE.engine_api_key
    made: openai.AsyncOpenAI
    if request.param == "v1":
        made = openai.AsyncOpenAI(base_url=f"{site}/openai/v1", api_key=key, max_retries=0)
    else:
        made = openai.AsyncAzureOpenAI(
            azure_endpoint=site, api_key=key, api_version="2024-10-21", max_retries=0
        )
    async with made:
        yield made


QUESTION: Any = [{"role": "user", "content": "What is twelve times twelve?"}]


async def test_the_official_client_gets_a_whole_answer(sdk: openai.AsyncOpenAI) -> None:
    answer = await sdk.chat.completions.create(model="my-deployment", messages=QUESTION)
    assert "144" in (answer.choices[0].message.content or "")
    assert (answer.model, answer.object) == ("my-deployment", "chat.completion")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0


async def test_the_official_client_gets_a_stream_with_azures_first_chunk(sdk: openai.AsyncOpenAI) -> None:
    options: Any = {"include_usage": True}
    stream = await sdk.chat.completions.create(
        model="my-deployment", messages=QUESTION, stream=True, stream_options=options
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[0].choices == []
    assert (chunks[0].model_extra or {}).get("prompt_filter_results")
    assert "144" in "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_the_official_client_gets_a_tool_call_and_answers_it(sdk: openai.AsyncOpenAI) -> None:
    asked: list[Any] = [{"role": "user", "content": "What is the weather in Paris?"}]
    async with sdk.chat.completions.stream(model="m", messages=asked, tools=[TIME_TOOL]) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].finish_reason == "tool_calls"
    calls = final.choices[0].message.tool_calls or []
    assert [call.function.name for call in calls] == ["get_weather"]
    assert json.loads(calls[0].function.arguments) == {"city": "Paris"}
    asked += [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [calls[0].model_dump(include={"id", "type", "function"})],
        },
        {"role": "tool", "tool_call_id": calls[0].id, "content": '{"weather": "sunny"}'},
    ]
    told = await sdk.chat.completions.create(model="m", messages=asked, tools=[TIME_TOOL])
    assert "sunny" in (told.choices[0].message.content or "")


async def test_a_limit_of_tokens_ends_the_answer(sdk: openai.AsyncOpenAI) -> None:
    answer = await sdk.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Count to one hundred."}], max_tokens=5
    )
    assert answer.choices[0].finish_reason == "length"
    assert len(answer.choices[0].message.content or "") <= 20


async def test_wrong_requests_get_the_services_errors(sdk: openai.AsyncOpenAI) -> None:
    image: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    for options, code in (
        ({"messages": []}, "empty_array"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value"),
        ({"messages": image}, "unsupported_content"),
        ({"messages": QUESTION, "n": 2}, "unsupported_value"),
        ({"messages": QUESTION, "stop": "x"}, "unsupported_parameter"),
        ({"messages": QUESTION, "max_tokens": 0}, "integer_out_of_range"),
        (
            {"messages": QUESTION, "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "invalid_value",
        ),
        ({"messages": QUESTION, "response_format": {"type": "json_object"}}, "unsupported_value"),
    ):
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as refused:
                await sdk.chat.completions.create(model="m", stream=stream, **options)
            assert refused.value.code == code
    wrong = sdk.with_options(api_key="wrong")
    with pytest.raises(openai.AuthenticationError):
        await wrong.chat.completions.create(model="m", messages=QUESTION)


async def test_the_official_client_lists_the_models(site: str) -> None:
    key = settings.VOICE.engine_api_key
    async with openai.AsyncOpenAI(base_url=f"{site}/openai/v1", api_key=key, max_retries=0) as sdk:
        assert [model.id async for model in await sdk.models.list()] == ["voiceapp-embedded"]
        with pytest.raises(openai.AuthenticationError):
            await sdk.with_options(api_key="wrong").models.list()
    async with httpx.AsyncClient(base_url=site, timeout=PATIENCE_S) as stranger:
        refused = await stranger.post("/openai/v1/models")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


async def test_api_tokens_open_the_chat_addresses_and_are_charged(site: str, token: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{site}/openai/v1", api_key=token, max_retries=0) as sdk:
        stream = await sdk.chat.completions.create(model="m", messages=QUESTION, stream=True)
        chunks = [chunk async for chunk in stream]
    # The count is kept, and not shown to a client that did not ask for it.
    assert all("usage" not in chunk.model_fields_set for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"
    usage = await TokenUsage.objects.aget()
    assert usage.tokens_out > 0


async def test_a_token_in_the_address_opens_the_chat_addresses_as_well(site: str, token: str) -> None:
    async with httpx.AsyncClient(base_url=site, timeout=PATIENCE_S) as stranger:
        for given, status in ((token, 200), ("va_wrong", 401)):
            asked = {"model": "m", "messages": QUESTION}
            answer = await stranger.post(f"/openai/v1/chat/completions?token={given}", json=asked)
            assert answer.status_code == status


@pytest.mark.parametrize(
    "address", ["/v1/generate", "/openai/v1/chat/completions", "/openai/deployments/dear/chat/completions"]
)
async def test_a_client_cannot_choose_what_the_operator_pays_for(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async with chat_behind(monkeypatch, script=sse(text("Hello."), STOP, USAGE, "[DONE]")) as chat:
        answer = await gateway.post(address, json={**HELLO, "model": "dear"})
    assert answer.status_code == 200
    assert chat.requests[0]["model"] == "upstream-model"


async def test_a_model_that_nobody_connected_is_not_available_yet(gateway: httpx.AsyncClient) -> None:
    for address in ("/v1/generate", "/openai/v1/chat/completions"):
        answer = await gateway.post(address, json={**HELLO, "model": "model-host"})
        assert answer.status_code == 503
        assert "model_host_absent" in answer.text


async def test_chat_completions_cost_what_the_prices_say(
    site: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("Hel"), text("lo."), STOP, USAGE, "[DONE]")
    async with (
        chat_behind(monkeypatch, script=script),
        openai.AsyncOpenAI(base_url=f"{site}/openai/v1", api_key=token, max_retries=0) as sdk,
    ):
        prices = replace(settings.VOICE, text_price_in=1_000_000.0, text_price_out=2_000_000.0)
        monkeypatch.setattr(settings, "VOICE", prices)
        await sdk.chat.completions.create(model="m", messages=QUESTION)
    assert (await TokenUsage.objects.aget()).cost_usd == 17.0


async def test_a_client_that_leaves_a_whole_answer_pays_for_what_was_said(
    site: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[str] = []
    feed = Collector.feed

    def noted(collector: Collector, chunk: Mapping[str, Any]) -> str:
        brought.append(feed(collector, chunk))
        return brought[-1]

    monkeypatch.setattr(Collector, "feed", noted)
    async with (
        chat_behind(monkeypatch, script=sse(text("One two three ")), hold=asyncio.Event()) as chat,
        openai.AsyncOpenAI(base_url=f"{site}/openai/v1", api_key=token, max_retries=0) as sdk,
    ):
        asked = asyncio.create_task(sdk.chat.completions.create(model="m", messages=QUESTION))
        await wait_until(lambda: bool(brought))
        asked.cancel()
        await asyncio.wait_for(chat.left.wait(), PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while not await TokenUsage.objects.aexists():
                await asyncio.sleep(0.01)
    assert (await TokenUsage.objects.aget()).tokens_out > 0


async def test_a_service_that_says_nothing_at_all_is_told_as_a_failure(
    sdk: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse("[DONE]")):
        with pytest.raises(openai.APIStatusError) as failed:
            await sdk.chat.completions.create(model="m", messages=QUESTION, stream=True)
    assert (failed.value.status_code, failed.value.code) == (502, "text_engine_error")


async def test_a_structured_answer_by_the_official_client(sdk: openai.AsyncOpenAI) -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "judgement", "schema": SCHEMA}}
    answer = await sdk.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "The score is 7"}], response_format=wanted
    )
    assert json.loads(answer.choices[0].message.content or "") == {"score": 7}
    assert answer.choices[0].finish_reason == "stop"
