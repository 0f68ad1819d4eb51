"""The text gateway and the chat addresses, over real sockets, with clients that others wrote."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from httpx_sse import EventSource, aconnect_sse
from jsonschema import Draft202012Validator

from tests.parts.chat_server import STOP, USAGE, chat_behind, chunk, sse, text
from tests.parts.contracts import schema_of
from tests.parts.forgetting import forget_tokens
from tests.parts.gateway_requests import HELLO, SCHEMA
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.records.models import ApiToken, TokenUsage

pytestmark = pytest.mark.django_db(transaction=True)


def valid(value: Any, name: str) -> None:
    if schema := schema_of("engine-gateway.v1.schema.json"):
        Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}).validate(value)


async def packets(gateway: httpx.AsyncClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    async with aconnect_sse(gateway, "POST", "/v1/generate/stream", json=body) as source:
        assert source.response.status_code == 200, await source.response.aread()
        async for event in source.aiter_sse():
            found.append({"event": event.event, "payload": json.loads(event.data)})
            valid(found[-1], "StreamPacket")
    return found


# -- the gateway ----------------------------------------------------------------------------------------


async def test_an_answer_is_whole_counted_and_charged(gateway: httpx.AsyncClient, token: str) -> None:
    answer = await gateway.post("/v1/generate", json=HELLO)
    assert answer.status_code == 200
    valid(answer.json(), "GenerateResponse")
    assert "144" in answer.json()["text"]
    assert (answer.json()["provider"], answer.json()["model"]) == ("embedded", "voiceapp-embedded")
    usage = await TokenUsage.objects.aget()
    assert usage.requests == 1
    assert (usage.tokens_in, usage.tokens_out) == (answer.json()["tokens_in"], answer.json()["tokens_out"])
    assert usage.tokens_in > 0 < usage.tokens_out


async def test_a_stream_ends_with_exactly_one_done(gateway: httpx.AsyncClient) -> None:
    found = await packets(gateway, HELLO)
    assert [packet["event"] for packet in found[:-1]] == ["token"] * (len(found) - 1)
    assert found[-1]["event"] == "done"
    assert found[-1]["payload"]["turns"] == 1
    assert "144" in "".join(packet["payload"]["text"] for packet in found[:-1])


async def test_a_service_behind_is_counted_and_priced(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse(text("Hel"), text("lo."), STOP, USAGE, "[DONE]")) as chat:
        prices = replace(settings.VOICE, text_price_in=1_000_000.0, text_price_out=2_000_000.0)
        monkeypatch.setattr(settings, "VOICE", prices)
        found = await packets(gateway, {**HELLO, "temperature": 0.1, "ai_role": "counselor"})
    assert [packet["payload"].get("text") for packet in found] == ["Hel", "lo.", None]
    done = found[-1]["payload"]
    assert (done["tokens_in"], done["tokens_out"], done["cost_usd"]) == (11, 3, 17.0)
    assert done["provider"] == "compatible"
    sent = chat.requests[0]
    assert sent["temperature"] == 0.1
    assert sent["model"] == "upstream-model"
    assert "counselor" in sent["messages"][0]["content"]


async def test_the_brain_costs_nothing(gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = replace(settings.VOICE, text_price_in=1_000_000.0, text_price_out=2_000_000.0)
    monkeypatch.setattr(settings, "VOICE", prices)
    assert (await gateway.post("/v1/generate", json=HELLO)).json()["cost_usd"] == 0
    assert (await TokenUsage.objects.aget()).cost_usd == 0


async def test_a_failure_behind_is_the_streams_one_error(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, status="429 Too Many Requests", script=[b"{}"]):
        found = await packets(gateway, HELLO)
        whole = await gateway.post("/v1/generate", json=HELLO)
    assert [packet["event"] for packet in found] == ["error"]
    assert found[0]["payload"]["detail"].startswith("rate_limit_exceeded")
    assert (whole.status_code, whole.json()["code"]) == (429, "rate_limit_exceeded")


async def test_words_before_a_failure_are_kept(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    filtered = chunk({"index": 0, "delta": {}, "finish_reason": "content_filter"})
    async with chat_behind(monkeypatch, script=sse(text("Well, "), filtered, "[DONE]")):
        found = await packets(gateway, HELLO)
    assert [packet["event"] for packet in found] == ["token", "error"]
    assert found[1]["payload"]["detail"].startswith("content_filter")


async def test_an_answer_that_does_not_fit_is_asked_for_once_more(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse(text('{"score": 11}'), STOP, USAGE, "[DONE]")) as chat:
        answer = await gateway.post("/v1/generate", json={**HELLO, "structured_schema": SCHEMA})
    assert (answer.status_code, answer.json()["code"]) == (502, "structured_output_failed")
    assert len(chat.requests) == 2
    assert chat.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "score: 11 is greater" in chat.requests[1]["messages"][-1]["content"]
    # Both attempts cost something.
    assert (await TokenUsage.objects.aget()).tokens_in == 22


async def test_an_answer_that_fits_comes_as_an_object(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = '```json\n{"score": 7}\n```'
    async with chat_behind(monkeypatch, script=sse(text(fenced), STOP, USAGE, "[DONE]")):
        answer = await gateway.post("/v1/generate", json={**HELLO, "structured_schema": SCHEMA})
    valid(answer.json(), "GenerateResponse")
    assert answer.json()["structured"] == {"score": 7}


async def test_the_brain_fills_a_schema_by_the_words_it_was_given(gateway: httpx.AsyncClient) -> None:
    asked = {"messages": [{"role": "user", "content": "The score is 7"}], "structured_schema": SCHEMA}
    answer = await gateway.post("/v1/generate", json=asked)
    assert answer.json()["structured"] == {"score": 7}
    found = await packets(gateway, asked)
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
    gateway: httpx.AsyncClient, body: dict[str, Any], told: str
) -> None:
    for address in ("/v1/generate", "/v1/generate/stream"):
        answer = await gateway.post(address, json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        assert told in answer.json()["detail"]


async def test_a_body_that_is_no_json_or_too_large_is_refused(gateway: httpx.AsyncClient) -> None:
    for content, status, code in (
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b" " * (2 * 1024 * 1024 + 1), 413, "body_too_large"),
    ):
        answer = await gateway.post("/v1/generate", content=content)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (await gateway.get("/v1/generate")).status_code == 405


async def test_only_tokens_open_it(site: str, token: str, user: User) -> None:
    async with httpx.AsyncClient(base_url=site, timeout=PATIENCE_S) as stranger:
        for headers in ({}, {"authorization": "Bearer va_wrong"}, {"authorization": f"Basic {token}"}):
            answer = await stranger.post("/v1/generate", json=HELLO, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "not_authorized")
        assert (await stranger.post(f"/v1/generate?token={token}", json=HELLO)).status_code == 200
        await ApiToken.objects.aupdate(enabled=False)
        forget_tokens()
        assert (await stranger.post(f"/v1/generate?token={token}", json=HELLO)).status_code == 401


@pytest.mark.parametrize(
    ("quota", "code"),
    [({"requests_per_minute": 2}, "quota_requests"), ({"tokens_per_day": 5}, "quota_tokens")],
)
async def test_quotas_are_kept(gateway: httpx.AsyncClient, quota: dict[str, int], code: str) -> None:
    await ApiToken.objects.aupdate(**quota)
    for _ in range(3):
        answer = await gateway.post("/v1/generate", json=HELLO)
    assert (answer.status_code, answer.json()["code"]) == (429, code)
    assert int(answer.headers["retry-after"]) >= 1


async def test_requests_at_once_are_limited(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ApiToken.objects.aupdate(concurrent_requests=1)
    async with (
        chat_behind(monkeypatch, script=sse(text("Now")), hold=asyncio.Event()) as chat,
        gateway.stream("POST", "/v1/generate/stream", json=HELLO) as running,
    ):
        await anext(running.aiter_bytes())
        second = await gateway.post("/v1/generate", json=HELLO)
        assert second.json()["code"] == "quota_concurrent"
        await running.aclose()
        await asyncio.wait_for(chat.left.wait(), PATIENCE_S)


async def test_a_client_that_leaves_ends_the_work_behind(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("One "), text("two "), text("three "))
    for address in ("/v1/generate/stream", "/openai/v1/chat/completions"):
        async with chat_behind(monkeypatch, script=script, hold=asyncio.Event()) as chat:
            async with gateway.stream("POST", address, json={**HELLO, "stream": True}) as running:
                bytes_read = running.aiter_bytes()
                while b"three" not in await anext(bytes_read):
                    pass
            await asyncio.wait_for(chat.left.wait(), PATIENCE_S)


async def test_a_caller_of_the_whole_answer_who_leaves_ends_the_work_too(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse(text("One ")), hold=asyncio.Event()) as chat:
        asked = asyncio.create_task(gateway.post("/v1/generate", json=HELLO))
        await wait_until(lambda: bool(chat.requests))
        asked.cancel()
        await asyncio.wait_for(chat.left.wait(), PATIENCE_S)


async def test_silence_is_broken_by_comments(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voiceapp.serving.exchange.KEEP_ALIVE_S", 0.05)
    async with (
        chat_behind(monkeypatch, hold=asyncio.Event()),
        gateway.stream("POST", "/v1/generate/stream", json=HELLO) as running,
    ):
        # On a busy machine two of them may come at once.
        assert (await anext(running.aiter_bytes())).startswith(b": ping\n\n")


async def test_the_golden_document_holds(capsys: pytest.CaptureFixture[str]) -> None:
    await asyncio.to_thread(call_command, "golden")
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("engine-gateway.v1.schema.json")).validate(document)
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
