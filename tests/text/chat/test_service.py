"""Chat endpoints over a real socket: what they may leave out, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings

from tests.parts.chat_server import STOP, USAGE, ChatServer, chat_provider, chat_server, chunk, sse, text
from tests.parts.waits import PATIENCE_S
from voiceapp.config import VoiceConfig
from voiceapp.errors import TextEngineError
from voiceapp.outbound.entra import credential
from voiceapp.text.chat.provider import ChatProvider
from voiceapp.text.chat.service import RemoteCompletions, azure_client
from voiceapp.text.provider import (
    CallArguments,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    FunctionTool,
    ReplyRequest,
    Said,
    TextDelta,
)

REQUEST = ReplyRequest("Be kind.", (Said("user", "Hello"),), spoken=False)
AZURE_FIRST = {
    "id": "", "object": "", "created": 0, "model": "", "choices": [],
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
}  # fmt: skip


async def collect(chat: ChatServer, request: ReplyRequest = REQUEST, key: str = "secret") -> list[Delta]:
    provider = chat_provider(chat.base_url, key)
    try:
        return [delta async for delta in provider.reply(request)]
    finally:
        await provider.aclose()


async def test_text_streams_and_usage_is_counted() -> None:
    script = sse(AZURE_FIRST, text("Hel"), text("lo."), STOP, USAGE, "[DONE]")
    async with chat_server(script=script) as chat:
        deltas = await collect(chat)
    assert deltas == [TextDelta("Hel"), TextDelta("lo."), Finished("stop", 11, 3)]
    assert chat.keys == ["bearer secret"]
    sent = chat.requests[0]
    assert (sent["model"], sent["stream"]) == ("some-model", True)
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
    ]
    assert "tools" not in sent


async def test_the_first_words_arrive_before_the_last_are_sent() -> None:
    async with chat_server(script=sse(text("Now. ")), hold=asyncio.Event()) as chat:
        provider = chat_provider(chat.base_url)
        stream = provider.reply(REQUEST)
        assert await asyncio.wait_for(anext(stream), PATIENCE_S) == TextDelta("Now. ")
        # Whoever interrupts closes the stream, and the endpoint is told at once.
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(chat.left.wait(), PATIENCE_S)
        await provider.aclose()


@pytest.mark.parametrize(
    "script",
    [
        sse(text("Hi."), STOP, "[DONE]", newline="\r\n"),
        sse(text("Hi."), STOP),
        sse(text("Hi."), chunk({"index": 0, "content_filter_results": {}, "finish_reason": None}), STOP),
        sse(chunk({"index": 0, "delta": {"role": "assistant", "content": ""}}), text("Hi."), STOP, "[DONE]"),
        sse(chunk({"index": 0, "delta": {"refusal": "Hi."}}), STOP, "[DONE]"),
        [part[index : index + 3] for part in sse(text("Hi."), STOP) for index in range(0, len(part), 3)],
    ],
)
async def test_what_services_leave_out_or_split_does_not_matter(script: list[bytes]) -> None:
    async with chat_server(script=script) as chat:
        deltas = await collect(chat)
    assert deltas == [TextDelta("Hi."), Finished("stop")]


async def test_a_character_split_between_reads_survives() -> None:
    whole = b"".join(sse(json.loads(json.dumps(text("x"))), STOP)).replace(b'"x"', '"Grüße 😀"'.encode())
    async with chat_server(script=[whole[index : index + 1] for index in range(len(whole))]) as chat:
        deltas = await collect(chat)
    assert deltas[0] == TextDelta("Grüße 😀")


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    return chunk({"index": 0, "delta": {"content": None, "tool_calls": list(entries)}, "finish_reason": None})


async def test_interleaved_tool_calls_are_told_apart_by_index() -> None:
    script = sse(
        calls({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
        calls({"index": 0, "function": {"arguments": '{"x":'}}),
        calls({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}),
        calls({"index": 0, "function": {"arguments": " 1}"}}),
        chunk({"index": 0, "delta": {}, "finish_reason": "tool_calls"}),
        "[DONE]",
    )
    tools = (FunctionTool("f", "Does f", {"type": "object", "properties": {}}), FunctionTool("g"))
    request = ReplyRequest("", (Said("user", "go"),), tools=tools, tool_choice="f", max_tokens=50)
    async with chat_server(script=script) as chat:
        deltas = await collect(chat, request)
    assert deltas == [
        CallStarted(0, "a", "f"), CallArguments(0, '{"x":'), CallStarted(1, "b", "g"), CallArguments(1, "{}"),
        CallArguments(0, " 1}"), CallFinished(0), CallFinished(1), Finished("stop"),
    ]  # fmt: skip
    sent = chat.requests[0]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert sent["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert sent["max_tokens"] == 50


async def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids() -> None:
    def whole(call_id: str, arguments: str) -> dict[str, Any]:
        function = {"name": "look", "arguments": arguments}
        call = {"index": 0, "id": call_id, "type": "function", "function": function}
        return chunk({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None})

    more = {"index": 0, "id": "b", "function": {"arguments": "}"}}
    rest = chunk({"index": 0, "delta": {"tool_calls": [more]}, "finish_reason": None})
    async with chat_server(script=sse(whole("a", "{}"), whole("b", "{"), rest, STOP, "[DONE]")) as chat:
        deltas = await collect(chat)
    assert deltas == [
        CallStarted(0, "a", "look"), CallArguments(0, "{}"),
        CallStarted(1, "b", "look"), CallArguments(1, "{"), CallArguments(1, "}"),
        CallFinished(0), CallFinished(1), Finished("stop", None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "expected"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
async def test_an_early_end_says_why(reason: str, expected: str) -> None:
    ending = chunk({"index": 0, "delta": {}, "finish_reason": reason})
    async with chat_server(script=sse(text("Hi"), ending, "[DONE]")) as chat:
        assert (await collect(chat))[-1] == Finished(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        ("401 Unauthorized", {"error": {"message": "bad key"}}, "text_engine_refused"),
        ("403 Forbidden", {"error": {"message": "no"}}, "text_engine_refused"),
        ("404 Not Found", {"error": {"message": "no such deployment"}}, "text_engine_not_found"),
        ("429 Too Many Requests", {"error": {"message": "slow down"}}, "rate_limit_exceeded"),
        ("400 Bad Request", {"error": {"code": "content_filter", "message": "no"}}, "content_filter"),
        ("500 Internal Server Error", {"error": {"message": "oops"}}, "text_engine_error"),
    ],
)
async def test_errors_have_stable_codes_and_hold_no_payload(
    status: str, body: dict[str, Any], code: str
) -> None:
    settings = {"status": status, "headers": "content-type: application/json"}
    async with chat_server(script=[json.dumps(body).encode()], **settings) as chat:
        with pytest.raises(TextEngineError) as caught:
            await collect(chat)
    assert caught.value.code == code
    assert body["error"]["message"] not in caught.value.message


async def test_an_error_in_mid_stream_is_an_error() -> None:
    async with chat_server(script=sse(text("Hi"), {"error": {"message": "broke", "code": "x"}})) as chat:
        with pytest.raises(TextEngineError):
            await collect(chat)


async def test_an_endpoint_that_is_not_there_is_unreachable() -> None:
    async with chat_server() as chat:
        pass
    with pytest.raises(TextEngineError) as caught:
        await collect(chat)
    assert caught.value.code == "text_engine_unreachable"


# -- Azure ------------------------------------------------------------------------------------------------


def azure(chat: ChatServer, **settings_: str) -> VoiceConfig:
    given = {"azure_endpoint": chat.base_url.removesuffix("/v1"), "azure_chat_deployment": "my-chat"}
    return replace(settings.VOICE, **{**given, **settings_})  # type: ignore[arg-type]


async def azure_words(config: VoiceConfig) -> str:
    made = RemoteCompletions(azure_client(config), config.azure_chat_deployment, "azure")
    provider = ChatProvider(made)
    try:
        deltas = [delta async for delta in provider.reply(REQUEST)]
    finally:
        await provider.aclose()
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("", "/openai/v1/chat/completions"),
        ("2024-10-21", "/openai/deployments/my-chat/chat/completions?api-version=2024-10-21"),
    ],
)
async def test_azure_is_reached_at_both_of_its_addresses_with_a_key(version: str, path: str) -> None:
    async with chat_server(script=sse(AZURE_FIRST, text("Hello."), STOP, "[DONE]")) as chat:
        config = azure(chat, azure_api_key="azure-key", azure_chat_api_version=version)
        assert await azure_words(config) == "Hello."
    assert chat.paths == [path]
    assert chat.heads[0]["api-key"] == "azure-key"
    assert chat.requests[0]["model"] == "my-chat"


@pytest.mark.parametrize("version", ["", "2024-10-21"])
async def test_without_a_key_every_request_brings_a_fresh_token(version: str) -> None:
    numbers = count(1)
    threads = set()

    class Source:
        def get_token(self, *scopes: str) -> Any:
            threads.add(threading.current_thread())
            return SimpleNamespace(token=f"token-{next(numbers)}")

    with credential.use(Source()):
        async with chat_server(script=sse(text("Hello."), STOP, "[DONE]")) as chat:
            config = azure(chat, azure_api_key="", azure_chat_api_version=version)
            made = RemoteCompletions(azure_client(config), "my-chat", "azure")
            for _ in range(2):
                assert [c async for c in made.stream({"messages": [{"role": "user", "content": "Hello"}]})]
            await made.aclose()
    assert chat.keys == ["bearer token-1", "bearer token-2"]
    assert "api-key" not in chat.heads[0]
    # Getting one may take seconds, which others' audio must not wait for.
    assert threading.current_thread() not in threads


async def test_no_token_is_a_refusal_in_words() -> None:
    class Source:
        def get_token(self, *scopes: str) -> Any:
            raise OSError("no network")

    with credential.use(Source()):
        async with chat_server(script=[]) as chat:
            with pytest.raises(TextEngineError, match="Entra ID gave no token") as refused:
                await azure_words(azure(chat, azure_api_key=""))
    assert refused.value.code == "text_engine_refused"


@pytest.mark.parametrize("script", [[], [text("Hel")]])
async def test_a_service_that_sends_nothing_but_comments_is_given_up(
    monkeypatch: pytest.MonkeyPatch, script: list[Any]
) -> None:
    monkeypatch.setattr("voiceapp.text.chat.service._TIMEOUT_S", 0.3)
    async with chat_server(script=sse(*script), comments=True) as chat:
        with pytest.raises(TextEngineError) as late:
            async with asyncio.timeout(PATIENCE_S):
                await collect(chat)
        assert late.value.code == "text_engine_timeout"
        await asyncio.wait_for(asyncio.gather(*chat.serving), PATIENCE_S)
