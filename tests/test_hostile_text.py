"""Chat requests, schemas and answers that were made to hold everybody up, or to break something."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chat_server import chat_server, chunk, sse
from tests.engine_server import EngineServer
from tests.servers import ROOT, Server
from tests.stalls import longest_stall
from tests.test_gateway import chat_behind
from voiceapp import http_exchange
from voiceapp.asgi import application
from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.records.tokens import forget_known, make_token
from voiceapp.text import chat_result, structured
from voiceapp.text.brain import Brain
from voiceapp.text.chat_result import Collector
from voiceapp.text.foreign_schema import fits, placeholder
from voiceapp.text.local_completions import LocalCompletions
from voiceapp.text.product import ProductGuide
from voiceapp.text.provider import Called, Delta, ReplyRequest, Returned, Said, Tool
from voiceapp.tools.registry import registry

NOW = dt.datetime(2026, 3, 2, 10, 0)
CHAT = "/openai/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYWORDS = ["type", "properties", "required", "enum", "const", "default", "items", "minItems", "minLength",
            "maxLength", "minimum", "maximum", "exclusiveMinimum", "pattern", "format"]  # fmt: skip
ANY_SCHEMA = st.recursive(
    st.dictionaries(st.sampled_from(KEYWORDS), ANY_JSON, max_size=4),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array", "string", "integer", ["null", "number"], 5])},
        optional={
            "properties": st.dictionaries(st.sampled_from(["city", "count", "a"]), inner, max_size=3),
            "required": st.lists(st.sampled_from(["city", "count", "a", 5]), max_size=3),
            "items": inner,
        },
    ),
    max_leaves=6,
)


def brain() -> Brain:
    return Brain(ProductGuide.load(), lambda: NOW)


def asked(text: str, *tools: Tool, choice: str = "required") -> ReplyRequest:
    return ReplyRequest("", (Said("user", text),), tools, choice)


async def reply(request: ReplyRequest) -> list[Delta]:
    return [delta async for delta in brain().reply(request)]


# -- tools' schemas ---------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(schema=ANY_SCHEMA, several=st.booleans(), choice=st.sampled_from(["auto", "required"]))
def test_no_schema_of_a_tool_breaks_the_brain(schema: dict[str, Any], several: bool, choice: str) -> None:
    tools = (Tool("get_weather", "Weather of a city", schema), Tool("set_timer", "", schema))
    text = "The weather in Paris and in Rome, and set a timer for 99 minutes"
    request = ReplyRequest("", (Said("user", text),), tools, choice, several_calls=several)
    assert list(brain().think(request))


def test_what_stands_in_for_unsaid_values_is_bounded() -> None:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(8):
        nested = {"type": "array", "items": nested, "minItems": 100_000_000_000}
    schema = {
        "type": "object",
        "properties": {"a": nested, "b": {"type": "string", "minLength": 10**12}},
        "required": ["a", "b", *(f"c{number}" for number in range(50_000))],
    }
    assert len(json.dumps(placeholder(schema))) < 200_000


def test_a_pattern_that_could_take_for_ever_is_not_tried() -> None:
    for pattern in (
        "(a+)+$",
        "(a|a)(a|a)(a|a)(a|a)$",
        "a?" * 30 + "a" * 30,
        "([a-z]+.)*x",
        "(",
        "a{1,9}{1,9}{1,9}",
    ):
        assert not fits("a" * 28 + "!", {"pattern": pattern})
    assert fits("AB12", {"pattern": r"^[A-Z]{2}\d+$"})
    assert not fits("12AB", {"pattern": r"^[A-Z]{2}\d+$"})


async def test_large_tools_and_long_texts_hold_nobody_up() -> None:
    words = " ".join(f"word{number} weather" for number in range(2_000))
    properties = {f"city{number}": {"type": "string", "enum": [f"x{number}"] * 500} for number in range(500)}
    tools = [Tool(f"weather{number}", words, {"properties": properties}) for number in range(128)]
    stall = await longest_stall(reply(asked("Weather in Paris. " * 220, *tools, choice="auto")))
    assert stall < 0.25


async def test_a_long_or_deep_result_is_told_in_few_words() -> None:
    for output in (
        "a " * 2_000_000,
        "[" * 900 + "]" * 900,
        "[" * 200_000,
        json.dumps({"k" * 9: "v " * 40_000}),
    ):
        history = (Said("user", "Go."), Called("c", "look", "{}"), Returned("c", output))
        told = await reply(ReplyRequest("", history))
        assert sum(len(getattr(delta, "text", "")) for delta in told) < 9_000


async def test_a_long_answer_lets_others_have_their_turn() -> None:
    history = (Said("assistant", "a " * 900_000), Said("user", "Say that again."))
    assert await longest_stall(reply(ReplyRequest("", history))) < 0.1


def test_an_answer_in_very_many_pieces_is_put_together_in_time() -> None:
    def took(pieces: int) -> float:
        collector, before = Collector(), time.process_time()
        call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "x" * 9}}
        for _ in range(pieces):
            collector.feed({"choices": [{"delta": {"content": "x" * 9, "tool_calls": [call]}}]})
        assert len(collector.result()["choices"][0]["message"]["content"]) == 9 * pieces
        return time.process_time() - before

    # Twice as many may take twice as long, not four times.
    assert took(100_000) < 3 * took(50_000) + 0.05


# -- schemas of answers -----------------------------------------------------------------------------------


def chain(keyword: str, links: int, last: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose every link is looked at twice as often as the one before."""
    links_of = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(links)}
    return {"type": "object", "$ref": "#/$defs/a0", "$defs": {**links_of, f"a{links}": last}}


@pytest.mark.parametrize(
    "schema", [chain("allOf", 40, {"type": "object"}), chain("anyOf", 40, {"type": "array"})]
)
async def test_a_schema_that_would_take_years_is_given_up(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured, "CHECK_S", 0.2)
    value, fault = await asyncio.wait_for(structured.read("{}", schema), 10)
    assert value is None
    assert fault == "the schema takes too long to check"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/default"}}, "default": {"pattern": "(a+)+$"}},
        {"properties": {"a": {"$ref": "#/enum/0"}}, "enum": [{"pattern": "(a+)+$"}]},
        {
            "$ref": "#/properties",
            "properties": {"patternProperties": {"(a+)+$": {}}, "additionalProperties": {}},
        },
        {"$ref": "#/properties", "properties": {"pattern": {}, "$schema": {"type": "string"}}},
        {"$ref": "#"},
        {"$ref": "#/type"},
        {"allOf": [{}], "$ref": "#/allOf/x"},
        {"$ref": "http://127.0.0.1:9/never"},
        {"properties": {"n": {"multipleOf": 0.1}}},
        {"properties": {"many": {"uniqueItems": True}}},
    ],
)
async def test_no_reference_number_or_list_breaks_or_delays_a_check(schema: dict[str, Any]) -> None:
    many = [{"n": number} for number in range(3_000)]
    answer = json.dumps({"a": "a" * 40 + "!", "a" * 40 + "!": 1, "n": 10**4_000, "many": many})
    before = time.perf_counter()
    value, fault = await structured.read(answer, {"type": "object", **schema})
    assert (value is None) == bool(fault)
    assert time.perf_counter() - before < 1


async def test_equal_values_are_found_whatever_they_look_like() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1.0, {"x": [2]}]}, "b": {"uniqueItems": True}}}
    for answer in ('{"a": 1}', '{"a": {"x": [2.0]}}', '{"b": [1, true, "1"]}'):
        assert (await structured.read(answer, schema))[0] == json.loads(answer)
    for answer in ('{"a": true}', '{"a": 2}', '{"b": [1, 1.0]}', '{"b": [{"x": 1}, {"x": 1}]}'):
        assert (await structured.read(answer, schema))[0] is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
async def test_numbers_that_json_does_not_have_are_no_answer(number: str) -> None:
    assert await structured.read(f'{{"a": {number}}}', {"type": "object"}) == (None, "the answer is no JSON")


async def test_checking_a_large_schema_holds_nobody_up() -> None:
    properties = {f"p{n}": {"type": "string", "minLength": 1, "enum": ["a", "b"]} for n in range(1_000)}
    work = structured.check_schema({"type": "object", "properties": properties})
    assert await longest_stall(work) < 0.1


# -- the addresses ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with EngineServer(application) as running:
        yield running.address.replace("ws://", "http://")


def head(path: str, token: str, length: int) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        "host: x",
        f"authorization: Bearer {token}",
        f"content-length: {length}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.fixture
def token(user: User) -> Iterator[str]:
    forget_known()
    yield make_token(user, "tests")[1]
    forget_known()


@pytest.fixture
async def client(server: str, token: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=20) as made:
        yield made


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("function", [[1], "text", 5])
async def test_a_call_without_a_function_is_refused(client: httpx.AsyncClient, function: Any) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]}
    answer = await client.post(CHAT, json={"messages": [message]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_type")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("odd", ["\ud800", 10**30, -(10**40), 1e308])
async def test_a_schema_with_odd_values_is_read_as_any(client: httpx.AsyncClient, odd: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"const": odd}}, "maximum": 10**30, "title": "\ud800"}
    body = json.dumps({"messages": HELLO, "structured_schema": schema})
    answer = await client.post("/v1/generate", content=body)
    assert answer.status_code in (200, 502)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/v1/generate", CHAT])
async def test_a_body_that_never_comes_is_not_waited_for(
    server: str, token: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_exchange, "BODY_S", 0.3)
    host, port = server.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head(path, token, 99) + b'{"mess')
    answer = await asyncio.wait_for(reader.readuntil(b"}"), 10)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"body_too_slow"' in answer
    writer.close()


@pytest.mark.django_db(transaction=True)
async def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(server: str, token: str) -> None:
    host, port = server.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head(CHAT, token, 10**12))
    assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 413")
    writer.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_service_that_says_nothing_is_an_error_in_words(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    async with chat_behind(monkeypatch, script=sse("[DONE]")):
        answer = await client.post(CHAT, json={"messages": HELLO, "stream": stream})
    if stream:
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "text_engine_error")
    else:
        assert answer.status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stream", [False, True])
async def test_whoever_leaves_before_the_answer_pays_for_the_question(
    server: str, token: str, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    asked_for = asyncio.Event()

    async def never(self: Any, body: Any) -> AsyncIterator[Any]:
        asked_for.set()
        await asyncio.Event().wait()
        yield {}

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(LocalCompletions, "stream", lambda self, body: never(self, body))
    monkeypatch.setattr(asked_for, "set", lambda: loop.call_soon_threadsafe(asyncio.Event.set, asked_for))
    host, port = server.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 400}], "stream": stream}).encode()
    writer.write(head(CHAT, token, len(body)) + body)
    await asyncio.wait_for(asked_for.wait(), 10)
    writer.transport.abort()
    async with asyncio.timeout(10):
        while not await TokenUsage.objects.filter(tokens_in__gte=100).aexists():
            await asyncio.sleep(0.02)
    assert await ApiToken.objects.acount() == 1


# -- services that answer nonsense ------------------------------------------------------------------------


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
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with chat_behind(monkeypatch, script=sse(NONSENSE[name], "[DONE]")):
        whole = await client.post("/v1/generate", json={"messages": HELLO})
        assert (whole.status_code, whole.json()["code"]) == (502, "text_engine_error")
        streamed = await client.post("/v1/generate/stream", json={"messages": HELLO})
        assert streamed.text.count("event: error") == 1
        chat = await client.post(CHAT, json={"messages": HELLO, "stream": True})
        assert (chat.status_code, chat.json()["error"]["code"]) == (502, "text_engine_error")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("counted", "kept"), [(-5, 0), (10**30, 10_000_000), ("x", 0), (1.5, 0), (None, 0), ([], 0)]
)
async def test_a_count_that_cannot_be_is_not_charged(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, counted: Any, kept: int
) -> None:
    await ApiToken.objects.aupdate(tokens_per_day=0)
    usage = json.dumps(chunk(usage={"prompt_tokens": counted, "completion_tokens": 1}))
    async with chat_behind(monkeypatch, script=sse(delta(content="Yes."), usage, "[DONE]")):
        assert (await client.post(CHAT, json={"messages": HELLO})).status_code == 200
        assert (await client.post("/v1/generate", json={"messages": HELLO})).status_code == 200
    used = await TokenUsage.objects.aget()
    assert (used.tokens_in, used.tokens_out) == (2 * kept, 2)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/v1/generate", CHAT])
async def test_an_answer_without_end_is_ended(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(chat_result, "MAX_CHARS", 10_000)
    async with chat_behind(monkeypatch, script=sse(*[delta(content="x" * 100)] * 200)):
        answer = await client.post(path, json={"messages": HELLO})
    assert answer.status_code == 502
    assert "longer than" in answer.text


@pytest.mark.parametrize("text", ["9" * 400 + " plus 1", "what is " + "9" * 400, "count to " + "9" * 400])
async def test_numbers_beyond_all_bounds_are_too_large(text: str) -> None:
    told = "".join(getattr(one, "text", "") for one in await reply(ReplyRequest("", (Said("user", text),))))
    assert "too large" in told or "too long" in told or "cannot answer" in told


@pytest.mark.parametrize("amount", ["9" * 400, "1e400", "hundred " * 400, "1" + " million" * 99])
def test_a_timer_for_longer_than_time_is_set_or_asked_about(amount: str) -> None:
    names = ("set_timer", "list_timers", "cancel_timer", "take_note")
    offered = [Tool(one["name"], "", one["parameters"]) for one in registry.definitions(names)]
    assert list(brain().think(asked(f"Set a timer for {amount} seconds", *offered, choice="auto")))


# -- the server's end -------------------------------------------------------------------------------------


async def test_answers_under_way_end_in_words_when_the_server_stops(tmp_path: Path) -> None:
    async with chat_server(script=sse(delta(content="Well, ")), hold=asyncio.Event()) as chat:
        server = Server(tmp_path, VOICEAPP_TEXT_BASE_URL=chat.base_url, VOICEAPP_TEXT_MODEL="m")
        try:
            await asyncio.to_thread(server.wait)
            made = [sys.executable, str(ROOT / "manage.py"), "token", "t"]
            env = {**os.environ, "VOICEAPP_DATA_DIR": str(tmp_path), "VIRTUAL_ENV": sys.prefix}
            env.pop("DJANGO_SETTINGS_MODULE", None)
            token = (await asyncio.to_thread(subprocess.check_output, made, env=env)).decode().strip()
            headers = {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client:
                body = {"messages": HELLO}
                asked = [
                    asyncio.create_task(client.post("/v1/generate", json=body)),
                    asyncio.create_task(client.post("/v1/generate/stream", json=body)),
                    asyncio.create_task(client.post(CHAT, json={**body, "stream": True})),
                ]
                async with asyncio.timeout(20):
                    while len(chat.requests) < 3:
                        await asyncio.sleep(0.02)
                server.send(signal.SIGTERM)
                whole, streamed, chatted = await asyncio.gather(*asked)
            assert await asyncio.to_thread(server.process.wait, 20) == 0
            assert "Traceback" not in await asyncio.to_thread(Path(server.log.name).read_text)
        finally:
            server.stop()
    assert (whole.status_code, whole.json()["code"]) == (503, "server_stopping")
    assert (
        streamed.text.rstrip().rsplit("event: ", 1)[1].startswith('error\ndata: {"detail": "server_stopping')
    )
    assert '"code": "server_stopping"' in chatted.text
