"""Chat services and databases in trouble: what programs get at each of their addresses, and what is kept."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
import websockets
from django.conf import settings
from django.db import OperationalError

from tests.parts.chat_server import STOP, USAGE, calls, chat_behind, chunk, ending, fragment, sse, text
from tests.parts.forgetting import forget_tokens
from tests.parts.gateway_requests import HELLO, SCHEMA
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.nnrp import connect
from voiceapp.errors import UpstreamRefused
from voiceapp.records.models import TokenUsage
from voiceapp.records.store import tokens

pytestmark = pytest.mark.django_db(transaction=True)

CHAT = "/openai/v1/chat/completions"
ASKED: dict[str, Any] = {"model": "default", "messages": HELLO["messages"]}
ENVELOPE = {"schema_version": "openai-compatible/1", "operation": "chat.completions.create"}


async def everywhere(gateway: httpx.AsyncClient) -> dict[str, tuple[int, str]]:
    """Ask at each address; return the status and the text of each answer."""
    bodies = {
        "/v1/generate": HELLO,
        "/v1/generate/stream": HELLO,
        CHAT: ASKED,
        f"{CHAT}?streamed": {**ASKED, "stream": True},
        "/v1/events": {**ENVELOPE, "body": {**ASKED, "stream": True}},
    }
    return {
        address: ((answer := await gateway.post(address, json=body)).status_code, answer.text)
        for address, body in bodies.items()
    }


ROLE = chunk({"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None})
UNUSABLE: dict[str, dict[str, Any]] = {
    "a role and an end": {"script": sse(ROLE, STOP, USAGE, "[DONE]")},
    "thoughts alone": {"script": sse(text("<think>Hm.</think>"), STOP, "[DONE]")},
    "nothing": {"script": []},
    "HTML": {"script": [b"<html></html>"], "headers": "content-type: text/html"},
    "a JSON error": {"script": [b'{"error": {"message": "x"}}'], "headers": "content-type: application/json"},
    "an error in the stream": {"script": sse(text("It is "), {"detail": "x"})},
    "a cut": {"script": sse(text("It is "))},
    "a cut in a call": {"script": sse(calls(fragment(0, id="a", name="cancel_orders")))},
}


@pytest.mark.parametrize("trouble", UNUSABLE)
async def test_what_is_no_answer_is_an_error_everywhere(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    async with chat_behind(monkeypatch, **UNUSABLE[trouble]):
        found = await everywhere(gateway)
    for whole in ("/v1/generate", CHAT):
        assert found[whole][0] == 502
        assert "text_engine_error" in found[whole][1]
    assert "event: error" in found["/v1/generate/stream"][1]
    assert "event: done" not in found["/v1/generate/stream"][1]
    assert "text_engine_error" in found[f"{CHAT}?streamed"][1]
    assert "[DONE]" not in found[f"{CHAT}?streamed"][1]
    events = found["/v1/events"][1]
    assert "event: response.error" in events
    assert "response.completed" not in events
    assert "tool_call.completed" not in events


WHOLE = {
    "choices": [{"index": 0, "message": {"content": "<think>Hm.</think>Good day!"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 3},
}
USABLE: dict[str, dict[str, Any]] = {
    "a whole completion": {
        "script": [json.dumps(WHOLE).encode()], "headers": "content-type: application/json"
    },
    "thoughts": {"script": sse(text("<thi"), text("nk>Hm.</th"), text("ink>Good day!"), STOP, "[DONE]")},
    "no end but [DONE]": {"script": sse(text("Good day!"), "[DONE]")},
    "a refusal of wishes": {
        "script": sse(text("Good day!"), STOP, "[DONE]"),
        "refuses": ("max_tokens", "temperature", "stream_options"),
    },
}  # fmt: skip


@pytest.mark.parametrize("script", USABLE)
async def test_what_is_an_answer_is_one_everywhere(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    async with chat_behind(monkeypatch, **USABLE[script]):
        found = await everywhere(gateway)
        assert json.loads(found["/v1/generate"][1])["text"] == "Good day!"
        assert json.loads(found[CHAT][1])["choices"][0]["message"]["content"] == "Good day!"
    for _, (status, answer) in found.items():
        assert status == 200
        assert "Good day!" in answer
        assert "Hm" not in answer
        assert "error" not in answer.replace('"error": null', "")


async def test_a_limit_that_was_used_up_in_thought_is_an_answer_of_nothing(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_behind(monkeypatch, script=sse(text("<think>Hm"), ending("length"), "[DONE]")):
        found = await everywhere(gateway)
    assert (found["/v1/generate"][0], "The model said nothing." in found["/v1/generate"][1]) == (502, True)
    assert "The model said nothing." in found["/v1/generate/stream"][1]
    # Of the chat addresses clients read why.
    assert json.loads(found[CHAT][1])["choices"][0]["finish_reason"] == "length"


async def test_a_schema_that_the_service_does_not_take_is_said_in_words(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text('{"score": 7}'), STOP, "[DONE]")
    async with chat_behind(monkeypatch, script=script, refuses=("response_format",)) as chat:
        answer = await gateway.post("/v1/generate", json={**HELLO, "structured_schema": SCHEMA})
        assert answer.json()["structured"] == {"score": 7}
        assert json.dumps(SCHEMA) in chat.requests[-1]["messages"][0]["content"]


async def test_messages_in_odd_order_are_sent_in_one_that_services_take(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [("assistant", "Hello."), ("user", "a"), ("system", "Be kind."), ("user", "b"), ("assistant", "c")]
    body = {"messages": [{"role": role, "content": words} for role, words in said]}
    async with chat_behind(monkeypatch, script=sse(text("Hi."), STOP, "[DONE]")) as chat:
        assert (await gateway.post("/v1/generate", json=body)).status_code == 200
    sent = [(message["role"], message["content"]) for message in chat.requests[0]["messages"]]
    assert sent == [("system", "Be kind."), ("assistant", "Hello."), ("user", "a\n\nb"), ("assistant", "c")]


async def test_a_thought_that_is_known_too_late_is_hidden_from_the_second_answer_on(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("Hm."), text("</think>"), text("Good day!"), STOP, USAGE, "[DONE]")
    streamed = {**ASKED, "stream": True, "stream_options": {"include_usage": True}}
    async with chat_behind(monkeypatch, script=script):
        first = await gateway.post(CHAT, json=streamed)
        second = await gateway.post(CHAT, json=streamed)
    # What is with the client cannot be taken back, and it is not bothered with that.
    assert ("Hm." in first.text, "Hm." in second.text) == (True, False)
    assert "taken_back" not in first.text
    async with chat_behind(monkeypatch, script=script):
        # An answer in one piece has not gone out before it is known.
        assert (await gateway.post("/v1/generate", json=HELLO)).json()["text"] == "Good day!"


# -- the database -----------------------------------------------------------------------------------------


async def test_an_answer_goes_out_while_the_database_is_away_and_is_counted_later(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge, away = tokens._charge, True

    def locked(*use: Any) -> None:
        if away:
            raise OperationalError("database is locked")
        charge(*use)

    monkeypatch.setattr(tokens, "_charge", locked)
    monkeypatch.setattr(tokens, "CHARGE_S", 0.01)
    async with chat_behind(monkeypatch, script=sse(text("Good day!"), STOP, USAGE, "[DONE]")):
        found = await everywhere(gateway)
    assert [status for status, _ in found.values()] == [200] * 5
    assert all("Good day!" in answer for _, answer in found.values())
    assert not await TokenUsage.objects.aexists()
    away = False
    async with asyncio.timeout(PATIENCE_S):
        while (usage := await TokenUsage.objects.afirst()) is None or usage.requests < 5:
            await asyncio.sleep(0.02)
    assert (usage.requests, usage.tokens_in, usage.tokens_out) == (5, 55, 15)


async def test_a_token_that_cannot_be_looked_up_is_told_so_everywhere(
    gateway: httpx.AsyncClient, server: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(digest: str) -> None:
        raise OperationalError("database is locked")

    forget_tokens()
    monkeypatch.setattr(tokens, "_look_up", locked)
    for status, answer in (await everywhere(gateway)).values():
        assert status == 503
        assert "store_unavailable" in answer
    with pytest.raises(UpstreamRefused, match="503"):
        async with connect(f"{server}/nnrp", token):
            pass
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(
            f"{server}/ws/model-host/", additional_headers={"authorization": f"Bearer {token}"}
        )
    assert refused.value.response.status_code == 503


async def test_an_operation_of_an_open_connection_is_told_that_its_token_cannot_be_looked_up(
    server: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up, away = tokens._look_up, False

    def locked(digest: str) -> Any:
        if away:
            raise OperationalError("database is locked")
        return look_up(digest)

    monkeypatch.setattr(tokens, "_look_up", locked)
    monkeypatch.setattr(settings, "VOICE", replace(settings.VOICE, text_base_url=""))
    async with connect(f"{server}/nnrp", token) as client:
        session = await client.open_session()
        for expected in ("response.completed", "response.error", "response.completed"):
            away = expected == "response.error"
            forget_tokens()
            event = await (await session.start(ASKED)).result()
            assert event["type"] == expected
            if away:
                assert event["error"]["code"] == "store_unavailable"
