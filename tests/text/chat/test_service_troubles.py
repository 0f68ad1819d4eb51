"""Chat services in trouble, over a real socket: what comes of it, and what the service is asked."""

from __future__ import annotations

import json
import logging
from typing import Any

import openai
import pytest

from tests.parts.chat_server import (
    STOP,
    ChatServer,
    calls,
    chat_provider,
    chat_server,
    chunk,
    ending,
    fragment,
    sse,
    text,
)
from voiceapp.errors import TextEngineError
from voiceapp.text.asking import Spent, ask
from voiceapp.text.chat import service
from voiceapp.text.chat.answer import NO_PART
from voiceapp.text.chat.provider import ChatProvider
from voiceapp.text.chat.service import RemoteCompletions, client_options
from voiceapp.text.checked_calls import CheckedCalls
from voiceapp.text.provider import (
    CallStarted,
    Finished,
    FunctionTool,
    ReplyRequest,
    Said,
    TakenBack,
    TextDelta,
    TextProvider,
)

REQUEST = ReplyRequest("", (Said("user", "Hello"),), (FunctionTool("look"),), max_tokens=50, spoken=False)
JSON = "content-type: application/json"
COMPLETION = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"content": "Good day!"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}
GREETED = ("Good day!", "stop")
BROKEN, NOTHING = "The chat endpoint broke off its answer.", "The model said nothing."
EMPTY, FAILED = "The chat endpoint answered nothing.", "The chat endpoint failed."


async def replied(provider: TextProvider, request: ReplyRequest = REQUEST) -> tuple[str, str]:
    """Return the words of a reply, and how it ended: the reason, or the sentence of the error."""
    words, end = "", ""
    try:
        async for delta in provider.reply(request):
            match delta:
                case TextDelta(text=more):
                    words += more
                case TakenBack():
                    words = ""
                case CallStarted(name=name):
                    words += f"({name})"
                case Finished(reason=reason):
                    end = reason
    except TextEngineError as error:
        end = error.message
    return words, end


async def reply_of(chat: ChatServer) -> tuple[str, str]:
    provider = CheckedCalls(chat_provider(chat.base_url))
    try:
        return await replied(provider)
    finally:
        await provider.aclose()


def whole(body: Any, headers: str = JSON) -> dict[str, Any]:
    return {"script": [body if isinstance(body, bytes) else json.dumps(body).encode()], "headers": headers}


def stream(*chunks: Any) -> dict[str, Any]:
    return {"script": sse(*chunks)}


ROLE = chunk({"index": 0, "delta": {"role": "assistant"}, "finish_reason": None})
FAILURE = {"object": "error", "message": "CUDA out of memory", "code": 500}

TROUBLES: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "a whole completion": (whole(COMPLETION), GREETED),
    "a whole completion by a wrong type": (whole(COMPLETION, "content-type: text/event-stream"), GREETED),
    "a whole completion without a type": (whole(b"\n " + json.dumps(COMPLETION).encode(), "x: y"), GREETED),
    "a stream by a wrong type": ({**stream(text("Good day!"), STOP), "headers": JSON}, GREETED),
    "an error as JSON": (whole({"error": {"message": "x"}}), ("", FAILED)),
    "a detail as JSON": (whole({"detail": "Not now"}), ("", FAILED)),
    "another JSON": (whole({"answer": "Good day!"}), ("", NO_PART)),
    "half a JSON": (whole(b'{"choices": [{"mess'), ("", NO_PART)),
    "HTML": (whole(b"<html>Welcome</html>", "content-type: text/html"), ("", NO_PART)),
    "HTML without a type": (whole(b"<html>Welcome</html>", "x: y"), ("", EMPTY)),
    "an empty body": (whole(b""), ("", EMPTY)),
    "no chunk": (stream("[DONE]"), ("", EMPTY)),
    "a role and an end": (stream(ROLE, STOP, "[DONE]"), ("", NOTHING)),
    "thoughts alone": (stream(text("<think>Hm.</think>"), STOP, "[DONE]"), ("", NOTHING)),
    "an error in the stream": (stream(text("It is "), FAILURE, "[DONE]"), ("It is ", FAILED)),
    "an error event": (
        {"script": [*sse(text("It is ")), b'event: error\ndata: {"x": 1}\n\n']},
        ("It is ", FAILED),
    ),
    "words for an error": ({"script": [*sse(text("It ")), b"data: Oops\n\n"]}, ("It ", NO_PART)),
    "a cut in words": (stream(text("It is "), text("four and")), ("It is four and", BROKEN)),
    "a cut in a chunk": ({"script": [*sse(text("It is ")), b'data: {"choices": [{"del']}, ("It is ", BROKEN)),
    "a cut behind the end": ({"script": [*sse(text("Good day!"), STOP), b'data: {"usa']}, GREETED),
    "no empty line at the end": ({"script": [*sse(text("Good day!")), b"data: [DONE]"]}, GREETED),
    "a cut behind a call's name": (stream(calls(fragment(0, id="a", name="look"))), ("", BROKEN)),
    "a call and [DONE]": (stream(calls(fragment(0, id="a", name="look")), "[DONE]"), ("", BROKEN)),
    "a call": (stream(calls(fragment(0, id="a", name="look")), ending(), "[DONE]"), ("(look)", "stop")),
    "a call in words": (stream(text('<tool_call>{"name": "look"}</tool_call>'), STOP), ("(look)", "stop")),
    "a length": (stream(text("Good"), ending("length"), "[DONE]"), ("Good", "max_output_tokens")),
}  # fmt: skip


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_what_a_service_answers_is_used_or_said_to_be_unusable(trouble: str) -> None:
    script, expected = TROUBLES[trouble]
    async with chat_server(**script) as chat:
        assert await reply_of(chat) == expected


async def test_a_connection_that_is_lost_behind_the_end_loses_nothing() -> None:
    headers = "content-type: text/event-stream\r\ncontent-length: 100000"
    async with chat_server(script=sse(text("Good day!"), STOP), headers=headers) as chat:
        assert await reply_of(chat) == GREETED
    async with chat_server(script=sse(text("Good day!")), headers=headers) as chat:
        assert await reply_of(chat) == ("Good day!", BROKEN)


# -- wishes -----------------------------------------------------------------------------------------------


async def asked_of(
    refused: tuple[str, ...], provider: str, *requests: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the requests that a service which refuses these parameters was sent, and what came of each."""
    async with chat_server(script=sse(text("Good day!"), STOP, "[DONE]"), refuses=refused) as chat:
        client = openai.AsyncOpenAI(base_url=chat.base_url, api_key="none", **client_options())
        made = RemoteCompletions(client, "m", provider)
        ends = []
        for request in requests:
            try:
                ends.append(await ask(made, request, Spent()))
            except TextEngineError as error:
                ends.append(error.code)
        await made.aclose()
    return chat.requests, ends


BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 50, "temperature": 0.7,
    "stream_options": {"include_usage": True}, "parallel_tool_calls": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("refused", "provider", "limit"),
    [
        ((), "compatible", "max_tokens"),
        ((), "azure", "max_completion_tokens"),
        (("max_tokens",), "compatible", "max_completion_tokens"),
        (("max_completion_tokens",), "azure", "max_tokens"),
        (("max_tokens", "max_completion_tokens"), "compatible", None),
        (("temperature", "stream_options", "parallel_tool_calls", "max_tokens"), "compatible",
         "max_completion_tokens"),
    ],
)  # fmt: skip
async def test_a_service_goes_without_what_it_refuses_and_is_not_asked_for_it_again(
    caplog: pytest.LogCaptureFixture,
    refused: tuple[str, ...],
    provider: str,
    limit: str | None,
) -> None:
    with caplog.at_level(logging.WARNING, service.__name__):
        sent, ends = await asked_of(refused, provider, BODY, BODY)
    assert ends == ["Good day!"] * 2
    assert len(sent) == len(refused) + 2
    first, second = sent[-2:]
    assert first == second
    assert not first.keys() & set(refused)
    assert {name for name in ("max_tokens", "max_completion_tokens") if name in first} == {limit} - {None}
    assert BODY.keys() - set(refused) - {"max_tokens"} <= first.keys()
    # The operator reads of each once.
    assert [record.args[1] for record in caplog.records if record.args] == list(refused)  # type: ignore[index]


async def test_what_a_service_needs_is_not_left_out() -> None:
    for needed in ("model", "messages"):
        sent, ends = await asked_of((needed,), "compatible", BODY)
        assert (len(sent), ends) == (1, ["invalid_request"])


async def test_a_request_is_sent_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_TRIES", 2)
    refused = ("temperature", "stream_options", "parallel_tool_calls")
    sent, ends = await asked_of(refused, "compatible", BODY, BODY)
    # The second request goes on where the first gave up.
    assert (len(sent), ends) == (4, ["invalid_request", "Good day!"])


@pytest.mark.parametrize(
    ("address", "limit"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://mine.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://mine.services.ai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://notapi.example/v1", "max_tokens"),
    ],
)
async def test_openais_own_services_get_the_word_of_theirs(address: str, limit: str) -> None:
    made = RemoteCompletions(openai.AsyncOpenAI(base_url=address, api_key="none"), "m", "compatible")
    assert {"messages": [], limit: 5} == made._options.fitted({"messages": [], "max_tokens": 5})
    await made.aclose()


# -- thoughts without an opening mark -----------------------------------------------------------------------


async def test_a_service_whose_thoughts_have_no_opening_mark_is_known_from_its_first_answer() -> None:
    thinking = sse(text("The user greets me."), text("</think>"), text("Good day!"), STOP, "[DONE]")
    plain = sse(text("Good "), text("day!"), STOP, "[DONE]")
    async with chat_server(script=thinking, then=[thinking, plain, plain]) as chat:
        provider: ChatProvider = chat_provider(chat.base_url)
        deltas = [[delta async for delta in provider.reply(REQUEST)] for _ in range(4)]
        await provider.aclose()
    end = Finished("stop")
    assert deltas == [
        [TextDelta("The user greets me."), TakenBack(), TextDelta("Good day!"), end],
        [TextDelta("Good day!"), end],
        # This once it did not think; then it is not waited for again.
        [TextDelta("Good day!"), end],
        [TextDelta("Good "), TextDelta("day!"), end],
    ]
