"""Functions that a Realtime service calls in a conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.parts.clock import pass_time
from tests.parts.gates import BLOCK_S
from tests.parts.page import Talk, answer, call, calls_made, rows, used
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import Assistant

pytestmark = pytest.mark.django_db(transaction=True)


async def test_parallel_calls_are_answered_as_they_finish_and_followed_once(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        ready = page.seen[-1]
        update = await upstream.expect("session.update")
        assert {tool["name"] for tool in update["session"]["tools"]} == {"wait", "block"}
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        for number in (1, 2, 3):
            await call(upstream, number, json.dumps({"number": number}))
        for number in (3, 1, 2):
            toolbox["gates"][number].set()
            output = (await upstream.expect("conversation.item.create"))["item"]
            assert output["type"] == "function_call_output"
            assert (output["call_id"], output["output"]) == (f"call_{number}", f"gate {number}")
        assert not upstream.sent_to_me("response.create")
        await upstream.send({"type": "response.done", "response": {"id": "resp_1", "status": "completed"}})
        await upstream.expect("response.create")
        assert len(upstream.sent_to_me("response.create")) == 1
        assert await calls_made(ready) == [(f"call_{n}", "completed") for n in (1, 2, 3)]


async def test_a_slow_tool_does_not_hold_up_audio(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        await call(upstream, 1, '{"number": 1}')
        await call(upstream, 2, '{"number": 2}', name="block")
        for n in range(10):
            await page.socket.send_to(bytes_data=bytes([n, 0]) * 480)
        while len(upstream.audio) < 10 * 960:
            await upstream.expect("input_audio_buffer.append")
        await answer(upstream, page, 200, "Meanwhile.")
        assert not upstream.sent_to_me("conversation.item.create")
        await pass_time(BLOCK_S)
        # The one that blocks its thread is over its limit: the model is told, and the session goes on.
        late = (await upstream.expect("conversation.item.create"))["item"]
        assert json.loads(late["output"])["error"]["code"] == "timeout"


async def test_an_interrupted_tool_is_answered_once_and_runs_once(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (_, upstream):
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        await call(upstream, 1, '{"number": 1}')
        await upstream.user_turn("wait, stop")
        cancelled = {"id": "resp_1", "status": "cancelled", "output": []}
        await upstream.send({"type": "response.done", "response": cancelled})
        await call(upstream, 1, '{"number": 1}')
        toolbox["gates"][1].set()
        await upstream.expect("conversation.item.create")
        await upstream.expect("response.create")
        assert toolbox["calls"] == [1]
        assert len(upstream.sent_to_me("conversation.item.create")) == 1


@pytest.mark.parametrize(
    "arguments", ["", "{", "[1]", '"text"', '{"number": "\\u0000"}', "9" * 1_000_000], ids=range(6)
)
async def test_arguments_that_do_not_fit_are_kept_and_told(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any], arguments: str
) -> None:
    async with talking(start=handy) as (page, upstream):
        await call(upstream, 1, arguments)
        output = json.loads((await upstream.expect("conversation.item.create"))["item"]["output"])
        assert output["error"]["code"] == "invalid_arguments"
        assert toolbox["calls"] == []
        await page.until("conversation.item.done")
        await page.send({"type": "ping", "seq": page.seq})
        await upstream.user_turn("go on")
        await page.until("conversation.item.input_audio_transcription.completed")
        assert await calls_made(next(e for e in page.seen if e["type"] == "session.ready")) == [
            ("call_1", "failed")
        ]


async def test_text_before_a_call_is_kept_in_order(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        await answer(upstream, page, 100, "Let me see.", whole=False)
        await call(upstream, 1, '{"number": 1}')
        toolbox["gates"][1].set()
        await upstream.end_answer("Let me see.")
        await page.until("response.done")
        kept = [(row["type"], row["generated_text"]) for row in await rows(page)]
        assert kept[:2] == [("message", "Let me see."), ("function_call", "")]
        assert kept[2:] in ([], [("function_call_output", "gate 1")])


async def test_hanging_up_keeps_a_running_call_as_cancelled(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any]
) -> None:
    async with talking(start=handy) as (page, upstream):
        ready = page.seen[-1]
        await call(upstream, 1, '{"number": 1}')
        await page.until("conversation.item.done")
        await page.hang_up()
        assert await calls_made(ready) == [("call_1", "cancelled")]


@pytest.mark.parametrize("dialect", [Dialect.GA, Dialect.PREVIEW])
async def test_a_model_that_only_calls_tools_is_asked_for_an_answer(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any], dialect: Dialect
) -> None:
    await Assistant.objects.aupdate(max_tool_rounds=2)
    for number in (1, 2, 3):
        toolbox["gates"][number].set()
    async with talking(dialect, start=handy) as (page, upstream):
        ready = page.seen[-1]
        await used(upstream, "wait", 1, number=1)
        assert "response" not in await upstream.expect("response.create")
        await used(upstream, "wait", 2, number=2)
        assert (await upstream.expect("response.create"))["response"] == {"tool_choice": "none"}
        assert "2 times" in (await page.until("notice", code="tool_rounds_spent"))["message"]
        assert await used(upstream, "wait", 3, number=3) == "gate 3"
        await page.until("notice", code="tool_rounds_exceeded")
        await upstream.user_turn("hello there")
        assert await used(upstream, "wait", 4, number=1) == "gate 1"
        assert "response" not in await upstream.expect("response.create")
        assert len(upstream.sent_to_me("response.create")) == 3
        assert await calls_made(ready) == [(f"call_{n}", "completed") for n in (1, 2, 3, 4)]
