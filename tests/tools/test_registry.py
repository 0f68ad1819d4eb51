"""Tools: made from functions, given only what fits, limited in time and size."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal
from uuid import uuid4

import jsonschema
import pytest
from msgspec import Meta

from tests.parts.clock import pass_time
from tests.parts.tool_runs import CONTEXT, run
from voiceapp.errors import InvalidArguments, ToolFailed, UnknownTool
from voiceapp.tools.functions import MAX_OUTPUT_CHARS, failure
from voiceapp.tools.registry import MAX_PROGRESS_CHARS, ToolContext, ToolRegistry, registry
from voiceapp.tools.shipped.clock_and_sums import current_time


def opening_hours(
    shop: Annotated[str, Meta(description="Its name")],
    day: Literal["today", "tomorrow"] = "today",
    floors: list[int] | None = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Tell when a shop
    is open.

    This is not for the model.
    """
    return {"shop": shop, "day": day, "floors": floors, "user": context.user_id}


def test_a_tool_is_described_by_its_signature() -> None:
    tools = ToolRegistry()
    tools.add(opening_hours)
    [definition] = tools.definitions(["opening_hours"])
    assert (definition["type"], definition["name"]) == ("function", "opening_hours")
    assert definition["description"] == "Tell when a shop is open."
    schema = definition["parameters"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["shop"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["shop"]["description"] == "Its name"
    assert schema["properties"]["day"]["enum"] == ["today", "tomorrow"]
    assert "context" not in schema["properties"]


async def test_a_tool_gets_what_fits_and_knows_who_asks() -> None:
    output = await run(opening_hours, '{"shop": "Bakery", "floors": [1, 2]}')
    assert json.loads(output) == {"shop": "Bakery", "day": "today", "floors": [1, 2], "user": 7}


@pytest.mark.parametrize(
    "arguments",
    [
        "", "{", "[]", '"text"', "null",
        '{"shop": 3}', '{"shop": "a", "day": "never"}', '{"shop": "a", "x": 1}',
        '{"shop": "a"' + " " * 100_001 + "}", "[" * 50_000, '{"shop": "\\ud800"}',
    ],
    ids=range(11),
)  # fmt: skip
async def test_arguments_that_do_not_fit_never_reach_the_tool(arguments: str) -> None:
    with pytest.raises(InvalidArguments):
        await run(opening_hours, arguments)


async def test_empty_arguments_will_do_for_a_tool_that_takes_none() -> None:
    def ping() -> str:
        """Say that all is well."""
        return "all is well \0 \u202e"

    assert await run(ping, "") == "all is well \0 \u202e"


async def test_only_the_assistants_own_tools_can_be_called() -> None:
    tools = ToolRegistry()
    tools.add(opening_hours)
    for allowed in ([], ["other"]):
        with pytest.raises(UnknownTool):
            await tools.run("opening_hours", '{"shop": "a"}', CONTEXT, allowed)


async def test_a_slow_tool_is_given_up() -> None:
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(30)
        return "too late"

    running = asyncio.create_task(run(slow, "", timeout_s=20))
    await pass_time(21)
    with pytest.raises(ToolFailed) as caught:
        await running
    assert caught.value.code == "timeout"


def test_a_call_has_one_key_however_often_it_is_made() -> None:
    session_id = uuid4()
    keys = {ToolContext(session_id, 7, "call_1").idempotency_key for _ in range(3)}
    assert len(keys) == 1
    assert ToolContext(session_id, 7, "call_2").idempotency_key not in keys
    assert ToolContext(uuid4(), 7, "call_1").idempotency_key not in keys


async def test_a_tool_says_what_it_is_doing() -> None:
    told: list[str] = []

    def look(context: ToolContext) -> str:
        """Look."""
        context.progress("Nearly there…" + "!" * 1000)
        return "found"

    tools = ToolRegistry()
    tools.add(look, progress="Looking that up…")
    await tools.run("look", "", ToolContext(uuid4(), 7, "call_1", told.append), ["look"])
    assert told[0] == "Looking that up…"
    assert told[1].startswith("Nearly there…")
    assert len(told[1]) == MAX_PROGRESS_CHARS


def test_the_registry_knows_which_tools_ask_first() -> None:
    tools = ToolRegistry()
    tools.add(opening_hours)
    tools.add(opening_hours, name="pay", needs_approval=True)
    assert tools.ask_first(["pay", "opening_hours", "other"]) == {"pay"}
    assert tools.ask_first(["opening_hours"]) == set()


async def test_a_tool_that_raises_says_so_without_its_secrets() -> None:
    def broken() -> str:
        """Break."""
        raise RuntimeError("password is hunter2")

    with pytest.raises(ToolFailed) as caught:
        await run(broken, "")
    assert json.loads(failure(caught.value)) == {
        "error": {"code": "tool_failed", "message": "broken failed (RuntimeError)."}
    }


async def test_a_long_output_is_cut_and_a_strange_one_refused() -> None:
    def long() -> str:
        """Say much."""
        return "x" * 1_000_000

    def strange() -> object:
        """Give something odd."""
        return object()

    assert len(await run(long, "")) < MAX_OUTPUT_CHARS + 20
    with pytest.raises(ToolFailed):
        await run(strange, "")


def test_what_cannot_be_a_tool_is_refused_at_once() -> None:
    def nameless(thing) -> str:  # type: ignore[no-untyped-def]
        """Lack a type."""
        return str(thing)

    def undescribed() -> str:
        return ""

    def loose(*things: str) -> str:
        """Take anything."""
        return ""

    for function in (nameless, undescribed, loose):
        with pytest.raises(ValueError, match=r"needs|cannot"):
            ToolRegistry().add(function)
    with pytest.raises(ValueError, match="already"):
        registry.add(current_time)


def test_the_products_own_tools_are_there() -> None:
    assert {"calculate", "current_time"} <= set(registry.names())
    for definition in registry.definitions(registry.names()):
        jsonschema.Draft202012Validator.check_schema(definition["parameters"])
