"""``/nnrp`` of the whole product: API tokens, the built-in brain, what is charged, and ``manage.py nnrp``."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management import CommandError, call_command

from tests.parts.chat_server import answering, calls, chat_server, chunk, ending, fragment, sse
from tests.parts.contracts import FOLDER, load
from tests.parts.forgetting import forget_tokens
from tests.parts.nnrp_parts import (
    check_events,
    check_recipe,
    envelope_of,
    native,
    native_events,
    native_submit,
)
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.nnrp import connect
from voiceapp.config import EMBEDDED_MODEL
from voiceapp.errors import RemoteProtocolError, UpstreamRefused
from voiceapp.nnrp.backing import FAILING_MODEL
from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.types import JsonObject

pytestmark = pytest.mark.django_db(transaction=True)

RECIPES = sorted(path.name for path in Path(FOLDER, "nnrp").glob("chat-*.json"))
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
ENVELOPE: JsonObject = {"schema_version": "openai-compatible/1", "operation": "chat.completions.create"}
ASKED: dict[str, Any] = {"model": "default", "messages": [{"role": "user", "content": "Add 2 and 3"}]}


async def test_the_brain_answers_and_the_token_pays(server: str, token: str) -> None:
    async with connect(f"{server}/nnrp", token) as client:
        session = await client.open_session()
        running = await session.start({**ASKED, "stream": True})
        events = [event async for event in running.events()]
        await session.close()
    check_events(events)
    body = events[-1]["body"]
    assert "5" in body["choices"][0]["message"]["content"]
    assert body["model"] == EMBEDDED_MODEL

    async def used() -> tuple[int, int]:
        row = await TokenUsage.objects.filter(token__name="tests").afirst()
        return (row.tokens_in, row.tokens_out) if row else (0, 0)

    async with asyncio.timeout(PATIENCE_S):
        # The answer does not wait for the books.
        while await used() == (0, 0):
            await asyncio.sleep(0.02)
    assert await used() == (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"])


async def test_a_wrong_request_of_the_engine_is_told_as_such(server: str, token: str) -> None:
    async with connect(f"{server}/nnrp", token) as client:
        running = await (await client.open_session()).start({**ASKED, "stop": ["x"]})
        event = await running.result()
    assert event["error"]["code"] == "invalid_body"
    assert "stop" in event["error"]["message"]


async def test_a_token_that_is_deleted_closes_the_connection_at_its_next_request(
    server: str, token: str
) -> None:
    async with connect(f"{server}/nnrp", token) as client:
        session = await client.open_session()
        assert (await (await session.start(ASKED)).result())["type"] == "response.completed"
        await ApiToken.objects.all().adelete()
        forget_tokens()
        running = await session.start(ASKED)
        with pytest.raises(RemoteProtocolError, match="token no longer counts"):
            await running.result()
    with pytest.raises(UpstreamRefused, match="refused the token"):
        async with connect(f"{server}/nnrp", token):
            pass


@pytest.mark.parametrize("name", RECIPES)
async def test_a_recipe_is_followed_by_the_product_as_it_comes(
    server: str, token: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brain answers; a failure behind it can only be ordered."""
    monkeypatch.setattr(settings, "VOICE", replace(settings.VOICE, engine_faults="1"))
    recipe = load(f"nnrp/{name}")
    async with connect(f"{server}/nnrp", token) as client:
        running = await (await client.open_session()).submit(envelope_of(recipe))
        check_recipe(recipe, [event async for event in running.events()])


async def test_nothing_fails_as_ordered_where_faults_are_not_allowed(server: str, token: str) -> None:
    async with connect(f"{server}/nnrp", token) as client:
        running = await (await client.open_session()).start({**ASKED, "model": FAILING_MODEL})
        assert (await running.result())["type"] == "response.completed"


async def test_an_independent_client_asks_48_questions_over_12_sessions(server: str, token: str) -> None:
    """Three times as many as the token may have under way: the others wait for their turn."""

    def drive() -> list[tuple[int, JsonObject]]:
        with native(f"{server}/nnrp", token) as connection, ThreadPoolExecutor(12) as threads:
            sessions = [asyncio.run(connection.open_session()) for _ in range(12)]

            def one(number: int) -> list[tuple[int, JsonObject]]:
                for frame in range(1, 5):
                    said = [{"role": "user", "content": f"What is {number} times {frame}?"}]
                    body = {"model": "default", "messages": said, "stream": True}
                    native_submit(sessions[number], {**ENVELOPE, "body": body}, frame)
                found = native_events(sessions[number], 4)
                return [(number * frame, events[-1]) for frame, events in found.items()]

            return [answer for answers in threads.map(one, range(12)) for answer in answers]

    answers = await asyncio.to_thread(drive)
    assert len(answers) == 48
    for product, event in answers:
        assert f" {product}." in event["body"]["choices"][0]["message"]["content"]


# -- the command ------------------------------------------------------------------------------------------


async def run(server: str, *options: str) -> str:
    out = StringIO()
    await sync_to_async(call_command, thread_sensitive=False)(
        "nnrp", *options, "--server", server.replace("ws", "http", 1), stdout=out
    )
    return out.getvalue()


async def test_the_command_prints_the_answer(server: str, token: str) -> None:
    printed = await run(server, "Add 2 and 3", "--token", token)
    assert "5" in printed.splitlines()[0]
    assert "tokens in" in printed


async def test_the_command_prints_events_as_json_and_tool_calls(
    server: str, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([tool]))
    script = [calls(fragment(0, id="a", name="look", arguments='{"x":1}')), ending(), chunk(usage=USAGE)]
    async with chat_server(script=sse(*script, "[DONE]")) as chat:
        with answering(monkeypatch, chat, text_model="some-model"):
            plain = await run(server, "Look.", "--token", token, "--tools", str(tools))
            printed = await run(server, "Look.", "--token", token, "--tools", str(tools), "--json")
    assert '[calls look {"x":1}]' in plain
    events = [json.loads(line) for line in printed.splitlines()]
    check_events(events)
    assert [event["type"] for event in events][:3] == [
        "response.tool_call.started",
        "response.tool_call.delta",
        "response.tool_call.completed",
    ]
    assert chat.requests[0]["tools"] == [tool]
    assert chat.requests[0]["model"] == "some-model"


async def test_the_command_cancels_after_so_many_events(server: str, token: str) -> None:
    printed = await run(server, "Tell me a story", "--token", token, "--cancel-after", "1", "--json")
    kinds = [json.loads(line)["type"] for line in printed.splitlines()]
    assert kinds == ["response.output_text.delta", "response.cancelled"]


async def test_the_command_says_what_is_wrong(server: str, token: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="refused the token"):
        await run(server, "Hello", "--token", "va_wrong")
    with pytest.raises(CommandError, match="API token"):
        await run(server, "Hello", "--token", "")
    with pytest.raises(CommandError, match="cannot be read"):
        await run(server, "Hello", "--token", token, "--tools", str(tmp_path / "none"))
    with pytest.raises(CommandError, match="invalid_nnrp_policy"):
        await run(server, "Hello", "--token", token, "--cancel-after", "-1")
    with pytest.raises(CommandError, match="full address"):
        await run("talk.example.org", "Hello", "--token", token)
