"""Nothing slow runs on the event loops, so no keep-alive is late: no query, no inference, no tool."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from tests.parts.clock import pass_time
from tests.parts.engine_parts import loaded, quiet, recording
from tests.parts.engine_server import connect, engine_server
from tests.parts.page import Talk, answer, call, calls_made, rows
from voiceapp.engine.inference.loading import Models, models
from voiceapp.relay.upstream import connection as upstream_module


def on_a_loop() -> bool:
    """Whether whoever asks holds up an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Watched:
    """Something of the engine's whose calls are noted, each with whether it held up a loop."""

    def __init__(self, inner: Any, seen: list[tuple[str, bool]]) -> None:
        self._inner = inner
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return self._watched(value, name) if callable(value) else value

    def __call__(self, *given: Any, **more: Any) -> Any:
        return self._watched(self._inner, type(self._inner).__name__)(*given, **more)

    def _watched(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call_it(*given: Any, **more: Any) -> Any:
            self._seen.append((name, on_a_loop()))
            return function(*given, **more)

        return call_it


async def test_the_engine_hears_and_speaks_beside_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool]] = []
    whole = loaded()
    parts = ("detector", "recogniser", "voice")
    watched: dict[str, Any] = {name: Watched(getattr(whole, name), seen) for name in parts}
    half = dataclasses.replace(whole, **watched)

    async def ready() -> Models:
        return half

    monkeypatch.setattr(models(), "ready", ready)
    with engine_server() as server:
        async with connect(server) as client:
            await client.update(audio={"input": {"transcription": {}}})
            await client.speak(recording("joke") + quiet(1500))
            await client.until("response.done")
    assert {name for name, _ in seen} >= {"run", "recognise", "speak"}
    assert [name for name, held_up in seen if held_up] == []


@pytest.mark.django_db(transaction=True)
async def test_sessions_ask_the_database_beside_their_loop(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    execute = CursorWrapper.execute

    def watched(self: CursorWrapper, *given: Any, **more: Any) -> Any:
        seen.append(on_a_loop())
        return execute(self, *given, **more)

    monkeypatch.setattr(CursorWrapper, "execute", watched)
    async with talking(start=handy) as (page, upstream):
        ready = page.seen[-1]
        await upstream.user_turn("hello")
        await answer(upstream, page, 100, "Good day.", whole=False)
        await call(upstream, 1, '{"number": 1}')
        toolbox["gates"][1].set()
        await upstream.expect("conversation.item.create")
        await upstream.end_answer("Good day.")
        await page.until("response.done")
        assert [row["generated_text"] for row in await rows(page)][:2] == ["hello", "Good day."]
        assert await calls_made(ready) == [("call_1", "completed")]
        await page.hang_up()
    assert seen
    assert not any(seen)


@pytest.mark.django_db(transaction=True)
async def test_a_tool_that_blocks_costs_neither_sides_keep_alive(
    talking: Talk, handy: dict[str, str], toolbox: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It blocks for twenty times as long as either side waits for an answer to its pings."""
    for name in ("PING_AFTER_S", "PING_REPLY_S"):
        monkeypatch.setattr(upstream_module, name, 2.0)
    async with talking(start=handy) as (page, upstream):
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        await call(upstream, 1, '{"number": 1}', name="block")
        for _ in range(10):
            await page.send({"type": "ping", "seq": page.seq})
            await page.until("pong")
            await pass_time(2 * upstream_module.PING_AFTER_S)
        assert toolbox["calls"] == [1]
        assert upstream.connections == 1
        assert "notice" not in [event["type"] for event in page.seen]
