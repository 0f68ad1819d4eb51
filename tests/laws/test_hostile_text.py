"""Chat requests, schemas and answers that were made to hold everybody up, or to break something."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.parts.chat_server import chat_behind, chat_server, chunk, sse
from tests.parts.places import ROOT
from tests.parts.servers import Server
from tests.parts.waits import PATIENCE_S
from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.serving import exchange
from voiceapp.text.chat import result
from voiceapp.text.chat.local import LocalCompletions

CHAT = "/openai/v1/chat/completions"

HELLO = [{"role": "user", "content": "hello"}]


# -- the addresses --------------------------------------------------------------------------------------


def head(path: str, token: str, length: int) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        "host: x",
        f"authorization: Bearer {token}",
        f"content-length: {length}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("function", [[1], "text", 5])
async def test_a_call_without_a_function_is_refused(gateway: httpx.AsyncClient, function: Any) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]}
    answer = await gateway.post(CHAT, json={"messages": [message]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_type")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("odd", ["\ud800", 10**30, -(10**40), 1e308])
async def test_a_schema_with_odd_values_is_read_as_any(gateway: httpx.AsyncClient, odd: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"const": odd}}, "maximum": 10**30, "title": "\ud800"}
    body = json.dumps({"messages": HELLO, "structured_schema": schema})
    answer = await gateway.post("/v1/generate", content=body)
    assert answer.status_code in (200, 502)


@pytest.mark.django_db(transaction=True)
async def test_a_name_that_is_no_text_is_refused(gateway: httpx.AsyncClient) -> None:
    body = json.dumps({"messages": [*HELLO, {"role": "user", "content": "", "\ud800": 1}]})
    answer = await gateway.post("/v1/generate", content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/v1/generate", CHAT])
async def test_a_body_that_never_comes_is_not_waited_for(
    site: str, token: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "BODY_S", 0.3)
    host, port = site.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head(path, token, 99) + b'{"mess')
    answer = await asyncio.wait_for(reader.readuntil(b"}"), PATIENCE_S)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"body_too_slow"' in answer
    writer.close()


@pytest.mark.django_db(transaction=True)
async def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(site: str, token: str) -> None:
    host, port = site.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head(CHAT, token, 10**12))
    assert (await asyncio.wait_for(reader.readline(), PATIENCE_S)).startswith(b"HTTP/1.1 413")
    writer.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_service_that_says_nothing_is_an_error_in_words(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    async with chat_behind(monkeypatch, script=sse("[DONE]")):
        answer = await gateway.post(CHAT, json={"messages": HELLO, "stream": stream})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "text_engine_error")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stream", [False, True])
async def test_whoever_leaves_before_the_answer_pays_for_the_question(
    site: str, token: str, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    asked_for = asyncio.Event()

    async def never(self: Any, body: Any) -> AsyncIterator[Any]:
        asked_for.set()
        await asyncio.Event().wait()
        yield {}

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(LocalCompletions, "stream", lambda self, body: never(self, body))
    monkeypatch.setattr(asked_for, "set", lambda: loop.call_soon_threadsafe(asyncio.Event.set, asked_for))
    host, port = site.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 400}], "stream": stream}).encode()
    writer.write(head(CHAT, token, len(body)) + body)
    await asyncio.wait_for(asked_for.wait(), PATIENCE_S)
    writer.transport.abort()
    async with asyncio.timeout(PATIENCE_S):
        while not await TokenUsage.objects.filter(tokens_in__gte=100).aexists():
            await asyncio.sleep(0.02)
    assert await ApiToken.objects.acount() == 1


# -- services that answer nonsense ----------------------------------------------------------------------


def delta(**fields: Any) -> str:
    return json.dumps(chunk({"index": 0, "delta": fields, "finish_reason": None}))


NONSENSE = {
    "number": "5", "text": '"x"', "list": "[]", "null": "null", "deep": "[" * 100_000, "no json": "{",
    "choices": '{"choices": 5}', "choice": '{"choices": [[]]}', "no choice": '{"choices": [null]}',
    "delta": '{"choices": [{"index": 0, "delta": "x"}]}', "content": delta(content=5),
    "parts": delta(content=["a"]), "calls": delta(tool_calls="x"), "call": delta(tool_calls=[None]),
    "function": delta(tool_calls=[{"function": 5}]),
    "name": delta(tool_calls=[{"index": 0, "function": {"name": 5}}]),
    "usage": '{"choices": [], "usage": "x"}',
}  # fmt: skip


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", NONSENSE)
async def test_nonsense_of_a_service_is_an_error_in_words(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with chat_behind(monkeypatch, script=sse(NONSENSE[name], "[DONE]")):
        whole = await gateway.post("/v1/generate", json={"messages": HELLO})
        assert (whole.status_code, whole.json()["code"]) == (502, "text_engine_error")
        streamed = await gateway.post("/v1/generate/stream", json={"messages": HELLO})
        assert streamed.text.count("event: error") == 1
        chat = await gateway.post(CHAT, json={"messages": HELLO, "stream": True})
        assert (chat.status_code, chat.json()["error"]["code"]) == (502, "text_engine_error")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("counted", "kept"), [(-5, 0), (10**30, 10_000_000), ("x", 0), (1.5, 0), (None, 0), ([], 0)]
)
async def test_a_count_that_cannot_be_is_not_charged(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, counted: Any, kept: int
) -> None:
    await ApiToken.objects.aupdate(tokens_per_day=0)
    usage = json.dumps(chunk(usage={"prompt_tokens": counted, "completion_tokens": 1}))
    async with chat_behind(monkeypatch, script=sse(delta(content="Yes."), usage, "[DONE]")):
        assert (await gateway.post(CHAT, json={"messages": HELLO})).status_code == 200
        assert (await gateway.post("/v1/generate", json={"messages": HELLO})).status_code == 200
    used = await TokenUsage.objects.aget()
    assert (used.tokens_in, used.tokens_out) == (2 * kept, 2)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/v1/generate", CHAT])
async def test_an_answer_without_end_is_ended(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(result, "MAX_CHARS", 10_000)
    async with chat_behind(monkeypatch, script=sse(*[delta(content="x" * 100)] * 200)):
        answer = await gateway.post(path, json={"messages": HELLO})
    assert answer.status_code == 502
    assert "longer than" in answer.text


# -- the server's end -----------------------------------------------------------------------------------


async def test_answers_under_way_end_in_words_when_the_server_stops(tmp_path: Path) -> None:
    async with chat_server(script=sse(delta(content="Well, ")), hold=asyncio.Event()) as chat:
        # Speech is somewhere else: no models are loaded.
        elsewhere = dict.fromkeys(("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_DEPLOYMENT"), "x")
        elsewhere["AZURE_OPENAI_ENDPOINT"] = "https://localhost:9"
        server = Server(tmp_path, VOICEAPP_TEXT_BASE_URL=chat.base_url, VOICEAPP_TEXT_MODEL="m", **elsewhere)
        try:
            await asyncio.to_thread(server.wait)
            made = [sys.executable, str(ROOT / "manage.py"), "token", "t"]
            env = {**os.environ, "VOICEAPP_DATA_DIR": str(tmp_path), "VIRTUAL_ENV": sys.prefix}
            env.pop("DJANGO_SETTINGS_MODULE", None)
            token = (await asyncio.to_thread(subprocess.check_output, made, env=env)).decode().strip()
            headers = {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=PATIENCE_S) as client:
                body = {"messages": HELLO}
                asked = [
                    asyncio.create_task(client.post("/v1/generate", json=body)),
                    asyncio.create_task(client.post("/v1/generate/stream", json=body)),
                    asyncio.create_task(client.post(CHAT, json={**body, "stream": True})),
                ]
                async with asyncio.timeout(PATIENCE_S):
                    while len(chat.requests) < 3:
                        await asyncio.sleep(0.02)
                server.send(signal.SIGTERM)
                whole, streamed, chatted = await asyncio.gather(*asked)
            assert await asyncio.to_thread(server.process.wait, PATIENCE_S) == 0
            assert "Traceback" not in await asyncio.to_thread(Path(server.log.name).read_text)
        finally:
            server.stop()
    assert (whole.status_code, whole.json()["code"]) == (503, "server_stopping")
    assert (
        streamed.text.rstrip().rsplit("event: ", 1)[1].startswith('error\ndata: {"detail": "server_stopping')
    )
    assert '"code": "server_stopping"' in chatted.text
