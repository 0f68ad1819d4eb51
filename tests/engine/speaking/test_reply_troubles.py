"""Replies of chat services in trouble, as a client of the engine gets them: spoken, captioned and kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.chat_server import STOP, calls, chat_behind, ending, fragment, sse, text
from tests.parts.engine_server import EngineServer, RealtimeClient, connect
from tests.parts.receivers import check_chat
from voiceapp.text.sentences import CODE_SAID, LINK_SAID

TOOL: dict[str, Any] = {"type": "function", "name": "cancel_orders"}
AUDIO, CAPTION = "response.output_audio.delta", "response.output_audio_transcript.delta"


async def answered(client: RealtimeClient, **wanted: Any) -> dict[str, Any]:
    await client.send("response.create", **wanted)
    done: dict[str, Any] = (await client.until("response.done"))["response"]
    return done


def words(done: dict[str, Any]) -> list[str]:
    """Return the words of each message, and the name of each call."""
    return [
        item["name"] if item["type"] == "function_call" else "".join(
            part.get("text") or part.get("transcript") or "" for part in item["content"]
        )
        for item in done["output"]
    ]  # fmt: skip


THINKING = [
    [text("<th"), text("ink>The user greets me.</th"), text("ink>\n\nGood day!"), STOP],
    [text("The user greets me. "), text("I will greet."), text("</think>"), text("Good day!"), STOP],
    [text("<|channel|>analysis<|message|>Hm.<|end|>"), text("<|start|>assistant<|channel|>final<|mess"),
     text("age|>Good day!"), STOP],
]  # fmt: skip


@pytest.mark.parametrize("chunks", THINKING)
async def test_thoughts_are_neither_captioned_nor_kept_nor_spoken(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, chunks: list[Any]
) -> None:
    plain = sse(text("Good day!"), STOP, "[DONE]")
    async with (
        chat_behind(monkeypatch, script=sse(*chunks, "[DONE]"), then=[plain, plain]) as chat,
        connect(engine) as client,
    ):
        done = await answered(client)
        assert (done["status"], words(done)) == ("completed", ["Good day!"])
        assert "".join(event["delta"] for event in client.of(CAPTION)) == "Good day!"
        thought = len(client.audio())
        await answered(client)
        assert len(client.audio()) == 2 * thought, "as long as without a thought"
        assert chat.requests[1]["messages"][-1] == {"role": "assistant", "content": "Good day!"}


@pytest.mark.parametrize("chunks", THINKING)
async def test_thoughts_are_not_kept_of_an_answer_in_writing(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, chunks: list[Any]
) -> None:
    async with chat_behind(monkeypatch, script=sse(*chunks, "[DONE]")) as chat, connect(engine) as client:
        await client.update(output_modalities=["text"])
        done = await answered(client)
        assert (done["status"], words(done)) == ("completed", ["Good day!"])
        assert [event["text"] for event in client.of("response.output_text.done")] == ["Good day!"]
        await answered(client)
        assert chat.requests[1]["messages"][-1] == {"role": "assistant", "content": "Good day!"}


SILENT = [
    {"script": sse(text("<think>Hm.</think>"), STOP, "[DONE]")},
    {"script": sse(text(""), STOP, "[DONE]")},
    {"script": []},
    {"script": [b"<html></html>"], "headers": "content-type: text/html"},
    {"script": [b'{"detail": "x"}'], "headers": "content-type: application/json"},
]


@pytest.mark.parametrize("script", SILENT)
@pytest.mark.parametrize("modality", ["audio", "text"])
async def test_an_answer_without_a_word_is_not_completed(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, script: dict[str, Any], modality: str
) -> None:
    async with chat_behind(monkeypatch, **script), connect(engine) as client:
        await client.update(output_modalities=[modality])
        done = await answered(client)
    assert (done["status"], done["output"]) == ("failed", [])
    assert done["status_details"]["error"]["code"] == "text_engine_error"


@pytest.mark.parametrize("modality", ["audio", "text"])
@pytest.mark.parametrize(
    "end", [[], [{"object": "error", "message": "CUDA out of memory", "code": 500}, "[DONE]"]]
)
async def test_the_words_before_a_failure_are_spoken_and_kept(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, end: list[Any], modality: str
) -> None:
    script = sse(text("It is four o'clock. "), text("And then"), *end)
    async with chat_behind(monkeypatch, script=script), connect(engine) as client:
        await client.update(output_modalities=[modality])
        done = await answered(client)
        assert (done["status"], words(done)) == ("failed", ["It is four o'clock. And then"])
        assert done["output"][0]["status"] == "incomplete"
        assert bool(client.of(AUDIO)) is (modality == "audio")


@pytest.mark.parametrize("end", [[], ["[DONE]"]])
@pytest.mark.parametrize("arguments", ["", "{", "{}"])
async def test_a_tool_is_not_called_where_the_stream_ended_in_the_call(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, end: list[Any], arguments: str
) -> None:
    begun = calls(fragment(0, id="a", name="cancel_orders", arguments=arguments))
    async with chat_behind(monkeypatch, script=sse(begun, *end)) as chat, connect(engine) as client:
        await client.update(output_modalities=["text"], tools=[TOOL])
        done = await answered(client)
        assert (done["status"], done["output"]) == ("failed", [])
        assert not client.of("response.function_call_arguments.done")
        assert len(chat.requests) == 1


async def test_a_call_that_is_written_as_text_is_made(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = text('One moment. <tool_call>{"name": "cancel_orders", "arguments": {}}</tool_call>')
    async with chat_behind(monkeypatch, script=sse(written, STOP, "[DONE]")), connect(engine) as client:
        await client.update(output_modalities=["text"], tools=[TOOL])
        done = await answered(client)
    assert (done["status"], words(done)) == ("completed", ["One moment. ", "cancel_orders"])


async def test_a_user_who_speaks_while_a_tool_runs_is_answered_then_and_later(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = sse(calls(fragment(0, id="a", name="cancel_orders", arguments="{}")), ending(), "[DONE]")
    fine = sse(text("Fine."), STOP, "[DONE]")
    async with (
        chat_behind(monkeypatch, script=call, then=[fine, fine, fine]) as chat,
        connect(engine) as client,
    ):
        await client.update(output_modalities=["text"], tools=[TOOL])
        await client.say("Cancel them.")
        [made] = (await answered(client))["output"]
        await client.say("And be quick.")
        await answered(client)
        output = {"type": "function_call_output", "call_id": made["call_id"], "output": "3 orders"}
        await client.send("conversation.item.create", item=output)
        await answered(client)
        await client.say("Thank you.")
        assert (await answered(client))["status"] == "completed"
        for request in chat.requests:
            check_chat(request["messages"])
        last = [message for message in chat.requests[-1]["messages"] if message["role"] == "tool"]
        assert [message["content"] for message in last] == ["3 orders"]


async def test_code_and_addresses_are_captioned_and_not_read_out(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = (
        "See https://example.com/very/long?address=here.\n```python\nfor each in range(99): pass\n```\nDone."
    )
    read = f"See {LINK_SAID}.\n{CODE_SAID}\nDone."
    scripts = [sse(text(said), STOP, "[DONE]") for said in (written, read)]
    async with (
        chat_behind(monkeypatch, script=scripts[0], then=[scripts[1]]),
        connect(engine) as client,
    ):
        done = await answered(client)
        assert words(done) == [written]
        spoken = len(client.audio())
        assert words(await answered(client)) == [read]
        assert spoken == pytest.approx(len(client.audio()) - spoken, rel=0.1)


async def test_an_assistant_with_a_longest_answer_is_answered_by_a_service_that_wants_another_word_for_it(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = sse(text("Fine."), STOP, "[DONE]")
    async with (
        chat_behind(monkeypatch, script=script, refuses=("max_tokens",)) as chat,
        connect(engine) as client,
    ):
        await client.update(output_modalities=["text"], max_output_tokens=64)
        for _ in range(2):
            assert (await answered(client))["status"] == "completed"
        assert [request.get("max_completion_tokens") for request in chat.requests] == [None, 64, 64]
