"""Calls of a chat service that does not keep to a tool's schema, as a client of the engine sees them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.parts.chat_server import STOP, calls, chat_behind, ending, fragment, sse, text
from tests.parts.engine_server import EngineServer, RealtimeClient, connect
from voiceapp.errors import TextEngineError
from voiceapp.text.checked_calls import CheckedCalls
from voiceapp.text.provider import (
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    FunctionTool,
    ReplyRequest,
    TakenBack,
    TextDelta,
)

COUNT: dict[str, Any] = {
    "type": "function",
    "name": "count",
    "parameters": {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 1}},
        "required": ["number"],
        "additionalProperties": False,
    },
}
IDLE: dict[str, Any] = {"type": "function", "name": "idle"}
DELTA, DONE = "response.function_call_arguments.delta", "response.function_call_arguments.done"


def calling(*arguments: str, name: str = "count", before: str = "") -> list[bytes]:
    """Return a stream that calls a function once, its arguments in pieces."""
    first, *rest = arguments or ("",)
    pieces = [calls(fragment(0, arguments=piece)) for piece in rest]
    began = calls(fragment(0, id="call_x", name=name, arguments=first))
    return sse(*([text(before)] if before else []), began, *pieces, ending(), "[DONE]")


async def ask(client: RealtimeClient) -> dict[str, Any]:
    """Ask for a response in writing; return what it came to."""
    await client.update(output_modalities=["text"], tools=[COUNT, IDLE])
    await client.send("response.create")
    done: dict[str, Any] = (await client.until("response.done"))["response"]
    return done


def streamed(client: RealtimeClient) -> list[str]:
    return [event["delta"] for event in client.events if event["type"] == DELTA]


async def test_arguments_that_fit_come_in_their_pieces(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        chat_behind(monkeypatch, script=calling('{"num', 'ber": 2}')) as chat,
        connect(engine) as client,
    ):
        done = await ask(client)
        assert (done["status"], streamed(client)) == ("completed", ['{"num', 'ber": 2}'])
        assert len(chat.requests) == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (('{"number": ', '"two"}'), "number: 'two' is not of type 'integer'"),
        (('{"number": 0}',), "number: 0 is less than the minimum of 1"),
        (("{}",), "'number' is a required property"),
        (('{"number": 2, "more": 1}',), "Additional properties are not allowed"),
        (('{"number": 2',), "the answer is no JSON"),
        (("[2]",), "the answer is no JSON object"),
        (('{"number": NaN}',), "the answer is no JSON"),
    ],
)
async def test_arguments_that_do_not_fit_are_asked_for_again(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, ...], told: str
) -> None:
    second = calling('{"number":', " 3}", before="Sorry. ")
    async with (
        chat_behind(monkeypatch, script=calling(*wrong, before="Let me count. "), then=[second]) as chat,
        connect(engine) as client,
    ):
        done = await ask(client)
        message, call = done["output"]
        assert (done["status"], message["content"][0]["text"]) == ("completed", "Let me count. ")
        assert (call["name"], json.loads(call["arguments"])) == ("count", {"number": 3})
        assert "".join(streamed(client)) == call["arguments"]
        again = chat.requests[1]
        assert again["tool_choice"] == {"type": "function", "function": {"name": "count"}}
        made = again["messages"][-2]["tool_calls"][0]["function"]["arguments"]
        # Some services parse what they are sent of earlier calls.
        assert made in ("".join(wrong), json.dumps({"arguments": "".join(wrong)}))
        assert isinstance(json.loads(made), dict)
        assert told in again["messages"][-1]["content"]


async def test_a_tool_that_nobody_offered_is_not_called(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        chat_behind(monkeypatch, script=calling("{}", name="fly"), then=[calling(name="idle")]) as chat,
        connect(engine) as client,
    ):
        [call] = (await ask(client))["output"]
        # A service leaves out the arguments of a function that takes none.
        assert (call["name"], call["arguments"]) == ("idle", "{}")
        assert chat.requests[1]["tool_choice"] == "auto"


async def test_a_model_that_does_not_learn_fails_the_response_and_not_the_session(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, right = calling('{"number": "x"}'), sse(text("Fine."), STOP, "[DONE]")
    async with (
        chat_behind(monkeypatch, script=wrong, then=[wrong, right]) as chat,
        connect(engine) as client,
    ):
        done = await ask(client)
        assert (done["status"], done["output"]) == ("failed", [])
        assert done["status_details"]["error"]["code"] == "invalid_tool_arguments"
        assert (streamed(client), len(chat.requests)) == ([], 2)
        await client.send("response.create")
        again = (await client.until("response.done"))["response"]
        assert again["output"][0]["content"][0]["text"] == "Fine."


async def test_json_in_a_code_fence_comes_without_it(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = calling('```json\n{"number": 4}\n```')
    async with chat_behind(monkeypatch, script=fenced) as chat, connect(engine) as client:
        [call] = (await ask(client))["output"]
        assert (json.loads(call["arguments"]), len(chat.requests)) == ({"number": 4}, 1)


async def test_a_call_that_the_token_limit_cut_short_is_none(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = calls(fragment(0, id="call_x", name="count", arguments='{"num'))
    script = sse(text("One. "), begun, ending("length"), "[DONE]")
    async with chat_behind(monkeypatch, script=script) as chat, connect(engine) as client:
        done = await ask(client)
        assert (done["status"], [item["type"] for item in done["output"]]) == ("incomplete", ["message"])
        assert (done["status_details"]["reason"], len(chat.requests)) == ("max_output_tokens", 1)


class Ended:
    """Whoever brings these deltas and then no more."""

    def __init__(self, *deltas: Delta) -> None:
        self._deltas = deltas

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        for delta in self._deltas:
            yield delta

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    "deltas",
    [[], [TextDelta("One. ")], [CallStarted(0, "a", "idle")], [CallStarted(0, "a", "idle"), CallFinished(0)]],
)
async def test_a_reply_without_its_end_calls_nothing_and_is_an_error(deltas: list[Delta]) -> None:
    seen: list[Delta] = []
    with pytest.raises(TextEngineError, match="broke off"):
        async for delta in CheckedCalls(Ended(*deltas)).reply(ReplyRequest("", (), (FunctionTool("idle"),))):
            seen.append(delta)
    assert seen == [delta for delta in deltas if isinstance(delta, TextDelta)]


async def test_what_is_taken_back_is_passed_on() -> None:
    deltas: list[Delta] = [TextDelta("Hm."), TakenBack(), TextDelta("Hi."), Finished()]
    assert [delta async for delta in CheckedCalls(Ended(*deltas)).reply(ReplyRequest("", ()))] == deltas
