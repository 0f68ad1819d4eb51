"""The text gateway and the chat addresses, over real sockets, with clients that others wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from httpx_sse import EventSource, aconnect_sse
from jsonschema import Draft202012Validator

from tests.chat_server import chat_server, chunk, sse, text
from tests.contracts import load
from tests.engine_server import EngineServer
from voiceapp.asgi import application
from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.records.tokens import forget_known, make_token
from voiceapp.text import providers
from voiceapp.text.chat_result import Collector

pytestmark = pytest.mark.django_db(transaction=True)

STOP = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})
USAGE = chunk(usage={"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14})
HELLO = {"messages": [{"role": "user", "content": "What is twelve times twelve?"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with EngineServer(application) as running:
        yield running.address.replace("ws://", "http://")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    forget_known()
    yield
    forget_known()


@pytest.fixture
def token(user: User) -> str:
    return make_token(user, "tests")[1]


@pytest.fixture
async def client(server: str, token: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=20) as made:
        yield made


@asynccontextmanager
async def chat_behind(monkeypatch: pytest.MonkeyPatch, **script: Any) -> AsyncIterator[Any]:
    """Let a scripted chat service answer instead of the brain."""
    async with chat_server(**script) as chat:
        voice = replace(settings.VOICE, text_base_url=chat.base_url, text_model="upstream-model")
        monkeypatch.setattr(settings, "VOICE", voice)
        monkeypatch.setattr(providers, "_engines", {})
        yield chat


def valid(value: Any, name: str) -> None:
    schema = load("engine-gateway.v1.schema.json")
    Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}).validate(value)


async def packets(client: httpx.AsyncClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    async with aconnect_sse(client, "POST", "/v1/generate/stream", json=body) as source:
        assert source.response.status_code == 200, await source.response.aread()
        async for event in source.aiter_sse():
            found.append({"event": event.event, "payload": json.loads(event.data)})
            valid(found[-1], "StreamPacket")
    return found


# -- the gateway ------------------------------------------------------------------------------------------


async def test_an_answer_is_whole_counted_and_charged(client: httpx.AsyncClient, token: str) -> None:
    answer = await client.post("/v1/generate", json=HELLO)
    assert answer.status_code == 200
    valid(answer.json(), "GenerateResponse")
    assert "144" in answer.json()["text"]
    assert (answer.json()["provider"], answer.json()["model"]) == ("embedded", "voiceapp-embedded")
    usage = await TokenUsage.objects.aget()
    assert usage.requests == 1
    assert (usage.tokens_in, usage.tokens_out) == (answer.json()["tokens_in"], answer.json()["tokens_out"])
    assert usage.tokens_in > 0 < usage.tokens_out


async def test_a_stream_ends_with_exactly_one_done(client: httpx.AsyncClient) -> None:
    found = await packets(client, HELLO)
    assert [packet["event"] for packet in found[:-1]] == ["token"] * (len(found) - 1)
    assert found[-1]["event"] == "done"
    assert found[-1]["payload"]["turns"] == 1
    assert "144" in "".join(packet["payload"]["text"] for packet in found[:-1])


async def test_a_service_behind_is_counted_and_priced(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse(text("Hel"), text("lo."), STOP, USAGE, "[DONE]")) as chat:
        prices = replace(settings.VOICE, text_price_in=1_000_000.0, text_price_out=2_000_000.0)
        monkeypatch.setattr(settings, "VOICE", prices)
        found = await packets(client, {**HELLO, "temperature": 0.1, "ai_role": "counselor"})
    assert [packet["payload"].get("text") for packet in found] == ["Hel", "lo.", None]
    done = found[-1]["payload"]
    assert (done["tokens_in"], done["tokens_out"], done["cost_usd"]) == (11, 3, 17.0)
    assert done["provider"] == "compatible"
    sent = chat.requests[0]
    assert sent["temperature"] == 0.1
    assert sent["model"] == "upstream-model"
    assert "counselor" in sent["messages"][0]["content"]


async def test_the_brain_costs_nothing(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = replace(settings.VOICE, text_price_in=1_000_000.0, text_price_out=2_000_000.0)
    monkeypatch.setattr(settings, "VOICE", prices)
    assert (await client.post("/v1/generate", json=HELLO)).json()["cost_usd"] == 0
    assert (await TokenUsage.objects.aget()).cost_usd == 0


async def test_a_failure_behind_is_the_streams_one_error(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, status="429 Too Many Requests", script=[b"{}"]):
        found = await packets(client, HELLO)
        whole = await client.post("/v1/generate", json=HELLO)
    assert [packet["event"] for packet in found] == ["error"]
    assert found[0]["payload"]["detail"].startswith("rate_limit_exceeded")
    assert (whole.status_code, whole.json()["code"]) == (429, "rate_limit_exceeded")


async def test_words_before_a_failure_are_kept(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    filtered = chunk({"index": 0, "delta": {}, "finish_reason": "content_filter"})
    async with chat_behind(monkeypatch, script=sse(text("Well, "), filtered, "[DONE]")):
        found = await packets(client, HELLO)
    assert [packet["event"] for packet in found] == ["token", "error"]
    assert found[1]["payload"]["detail"].startswith("content_filter")


SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["score"],
    "additionalProperties": False,
}


async def test_an_answer_that_does_not_fit_is_asked_for_once_more(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse(text('{"score": 11}'), STOP, USAGE, "[DONE]")) as chat:
        answer = await client.post("/v1/generate", json={**HELLO, "structured_schema": SCHEMA})
    assert (answer.status_code, answer.json()["code"]) == (502, "structured_output_failed")
    assert len(chat.requests) == 2
    assert chat.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "score: 11 is greater" in chat.requests[1]["messages"][-1]["content"]
    # Both attempts cost something.
    assert (await TokenUsage.objects.aget()).tokens_in == 22


async def test_an_answer_that_fits_comes_as_an_object(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = '```json\n{"score": 7}\n```'
    async with chat_behind(monkeypatch, script=sse(text(fenced), STOP, USAGE, "[DONE]")):
        answer = await client.post("/v1/generate", json={**HELLO, "structured_schema": SCHEMA})
    valid(answer.json(), "GenerateResponse")
    assert answer.json()["structured"] == {"score": 7}


async def test_the_brain_fills_a_schema_by_the_words_it_was_given(client: httpx.AsyncClient) -> None:
    asked = {"messages": [{"role": "user", "content": "The score is 7"}], "structured_schema": SCHEMA}
    answer = await client.post("/v1/generate", json=asked)
    assert answer.json()["structured"] == {"score": 7}
    found = await packets(client, asked)
    assert [packet["event"] for packet in found] == ["token", "done"]
    assert json.loads(found[0]["payload"]["text"]) == {"score": 7}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({**HELLO, "max_tokens": 0}, "max_tokens"),
        ({**HELLO, "max_tokens": "many"}, "max_tokens"),
        ({**HELLO, "temperature": 3}, "temperature"),
        ({**HELLO, "structured_schema": {"type": "array"}}, "structured_schema"),
        ({**HELLO, "structured_schema": {"type": "object", "properties": 5}}, "structured_schema"),
    ],
)
async def test_a_request_outside_the_contract_is_told_why(
    client: httpx.AsyncClient, body: dict[str, Any], told: str
) -> None:
    for address in ("/v1/generate", "/v1/generate/stream"):
        answer = await client.post(address, json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert told in answer.json()["detail"]


async def test_a_body_that_is_no_json_or_too_large_is_refused(client: httpx.AsyncClient) -> None:
    for content, status, code in (
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b" " * (2 * 1024 * 1024 + 1), 413, "body_too_large"),
    ):
        answer = await client.post("/v1/generate", content=content)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (await client.get("/v1/generate")).status_code == 405


async def test_only_tokens_open_it(server: str, token: str, user: User) -> None:
    async with httpx.AsyncClient(base_url=server) as stranger:
        for headers in ({}, {"authorization": "Bearer va_wrong"}, {"authorization": f"Basic {token}"}):
            answer = await stranger.post("/v1/generate", json=HELLO, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "not_authorized")
        assert (await stranger.post(f"/v1/generate?token={token}", json=HELLO)).status_code == 200
        await ApiToken.objects.aupdate(enabled=False)
        forget_known()
        assert (await stranger.post(f"/v1/generate?token={token}", json=HELLO)).status_code == 401


@pytest.mark.parametrize(
    ("quota", "code"),
    [({"requests_per_minute": 2}, "quota_requests"), ({"tokens_per_day": 5}, "quota_tokens")],
)
async def test_quotas_are_kept(client: httpx.AsyncClient, quota: dict[str, int], code: str) -> None:
    await ApiToken.objects.aupdate(**quota)
    for _ in range(3):
        answer = await client.post("/v1/generate", json=HELLO)
    assert (answer.status_code, answer.json()["code"]) == (429, code)
    assert int(answer.headers["retry-after"]) >= 1


async def test_requests_at_once_are_limited(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ApiToken.objects.aupdate(concurrent_requests=1)
    async with (
        chat_behind(monkeypatch, script=sse(text("Now")), hold=asyncio.Event()) as chat,
        client.stream("POST", "/v1/generate/stream", json=HELLO) as running,
    ):
        await anext(running.aiter_bytes())
        second = await client.post("/v1/generate", json=HELLO)
        assert second.json()["code"] == "quota_concurrent"
        await running.aclose()
        await asyncio.wait_for(chat.left.wait(), 5)


async def test_a_client_that_leaves_ends_the_work_behind_within_a_second(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("One "), text("two "), text("three "))
    for address in ("/v1/generate/stream", "/openai/v1/chat/completions"):
        async with chat_behind(monkeypatch, script=script, hold=asyncio.Event()) as chat:
            async with client.stream("POST", address, json={**HELLO, "stream": True}) as running:
                bytes_read = running.aiter_bytes()
                while b"three" not in await anext(bytes_read):
                    pass
            await asyncio.wait_for(chat.left.wait(), 1)


async def test_a_caller_of_the_whole_answer_who_leaves_ends_the_work_too(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse(text("One ")), hold=asyncio.Event()) as chat:
        asked = asyncio.create_task(client.post("/v1/generate", json=HELLO))
        await wait_until(lambda: bool(chat.requests))
        asked.cancel()
        await asyncio.wait_for(chat.left.wait(), 1)


async def test_silence_is_broken_by_comments(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voiceapp.http_exchange.KEEP_ALIVE_S", 0.05)
    async with (
        chat_behind(monkeypatch, hold=asyncio.Event()),
        client.stream("POST", "/v1/generate/stream", json=HELLO) as running,
    ):
        assert await anext(running.aiter_bytes()) == b": ping\n\n"


async def test_the_golden_document_holds(capsys: pytest.CaptureFixture[str]) -> None:
    await asyncio.to_thread(call_command, "golden")
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(load("engine-gateway.v1.schema.json")).validate(document)
    frames = "".join(document["stream_frames"])
    assert read_sse(frames) == document["stream_packets"]
    assert read_sse(frames.replace("\n", "\r\n")) == document["stream_packets"]
    # Lines that a tolerant reader takes: each alone makes no packet, or the same one.
    for line in document["compatibility_lines"]:
        assert [packet["event"] for packet in read_sse(f"{line}\n\n")] in ([], ["message"])
    assert document["stream_packets"][-1]["event"] == "done"


def read_sse(frames: str) -> list[dict[str, Any]]:
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, text=frames)
    events = [event for event in EventSource(response).iter_sse() if event.data]
    return [{"event": event.event, "payload": json.loads(event.data)} for event in events]


async def wait_until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not done():
            await asyncio.sleep(0.005)


# -- chat completions ---------------------------------------------------------------------------------------

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
async def sdk(request: pytest.FixtureRequest, server: str) -> AsyncIterator[openai.AsyncOpenAI]:
    """The official client at both addresses."""
    key = settings.VOICE.engine_api_key
    made: openai.AsyncOpenAI
    if request.param == "v1":
        made = openai.AsyncOpenAI(base_url=f"{server}/openai/v1", api_key=key, max_retries=0)
    else:
        made = openai.AsyncAzureOpenAI(
            azure_endpoint=server, api_key=key, api_version="2024-10-21", max_retries=0
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


def test_calls_that_are_all_numbered_0_are_put_together_apart() -> None:
    collector = Collector()
    for call in (
        {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "look", "arguments": "{"}},
        {"index": 0, "id": "b", "function": {"arguments": "}"}},
    ):
        collector.feed(chunk({"index": 0, "delta": {"tool_calls": [call]}}))
    calls = collector.result()["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", "{}"), ("b", "{}")]


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


async def test_the_official_client_lists_the_models(server: str) -> None:
    key = settings.VOICE.engine_api_key
    async with openai.AsyncOpenAI(base_url=f"{server}/openai/v1", api_key=key, max_retries=0) as sdk:
        assert [model.id async for model in await sdk.models.list()] == ["voiceapp-embedded"]
        with pytest.raises(openai.AuthenticationError):
            await sdk.with_options(api_key="wrong").models.list()


async def test_api_tokens_open_the_chat_addresses_and_are_charged(server: str, token: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server}/openai/v1", api_key=token, max_retries=0) as sdk:
        stream = await sdk.chat.completions.create(model="m", messages=QUESTION, stream=True)
        chunks = [chunk async for chunk in stream]
    # The count is kept, and not shown to a client that did not ask for it.
    assert all("usage" not in chunk.model_fields_set for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"
    usage = await TokenUsage.objects.aget()
    assert usage.tokens_out > 0


async def test_a_token_in_the_address_opens_the_chat_addresses_as_well(server: str, token: str) -> None:
    async with httpx.AsyncClient(base_url=server) as stranger:
        for given, status in ((token, 200), ("va_wrong", 401)):
            asked = {"model": "m", "messages": QUESTION}
            answer = await stranger.post(f"/openai/v1/chat/completions?token={given}", json=asked)
            assert answer.status_code == status


@pytest.mark.parametrize(
    "address", ["/v1/generate", "/openai/v1/chat/completions", "/openai/deployments/dear/chat/completions"]
)
async def test_a_client_cannot_choose_what_the_operator_pays_for(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async with chat_behind(monkeypatch, script=sse(text("Hello."), STOP, USAGE, "[DONE]")) as chat:
        answer = await client.post(address, json={**HELLO, "model": "dear"})
    assert answer.status_code == 200
    assert chat.requests[0]["model"] == "upstream-model"


async def test_a_model_that_nobody_connected_is_not_available_yet(client: httpx.AsyncClient) -> None:
    for address in ("/v1/generate", "/openai/v1/chat/completions"):
        answer = await client.post(address, json={**HELLO, "model": "model-host"})
        assert answer.status_code == 503
        assert "model_host_absent" in answer.text


async def test_chat_completions_cost_what_the_prices_say(
    server: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("Hel"), text("lo."), STOP, USAGE, "[DONE]")
    async with (
        chat_behind(monkeypatch, script=script),
        openai.AsyncOpenAI(base_url=f"{server}/openai/v1", api_key=token, max_retries=0) as sdk,
    ):
        prices = replace(settings.VOICE, text_price_in=1_000_000.0, text_price_out=2_000_000.0)
        monkeypatch.setattr(settings, "VOICE", prices)
        await sdk.chat.completions.create(model="m", messages=QUESTION)
    assert (await TokenUsage.objects.aget()).cost_usd == 17.0


async def test_a_client_that_leaves_a_whole_answer_pays_for_what_was_said(
    server: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[str] = []
    feed = Collector.feed

    def noted(collector: Collector, chunk: Mapping[str, Any]) -> str:
        brought.append(feed(collector, chunk))
        return brought[-1]

    monkeypatch.setattr(Collector, "feed", noted)
    async with (
        chat_behind(monkeypatch, script=sse(text("One two three ")), hold=asyncio.Event()) as chat,
        openai.AsyncOpenAI(base_url=f"{server}/openai/v1", api_key=token, max_retries=0) as sdk,
    ):
        asked = asyncio.create_task(sdk.chat.completions.create(model="m", messages=QUESTION))
        await wait_until(lambda: bool(brought))
        asked.cancel()
        await asyncio.wait_for(chat.left.wait(), 1)
        async with asyncio.timeout(5):
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
