"""What a call would do, found out before the user is asked, and all that the run then works on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.parts.page import Page, Talk, call
from tests.parts.scripted import Service
from voiceapp.records.models import Assistant, Note
from voiceapp.tools import registry as registries
from voiceapp.tools.previews import Preview
from voiceapp.tools.registry import ToolContext, ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)


async def question(
    page: Page, upstream: Service, name: str, arguments: str, number: int = 1
) -> dict[str, Any]:
    await call(upstream, number, arguments, name=name)
    return await page.until("approval.requested")


async def allow(page: Page, asked: dict[str, Any]) -> None:
    request = asked["approval_request_id"]
    item = {"type": "mcp_approval_response", "approval_request_id": request, "approve": True}
    await page.send({"type": "conversation.item.create", "item": item})


async def output(upstream: Service) -> str:
    while (item := (await upstream.expect("conversation.item.create"))["item"])[
        "type"
    ] != "function_call_output":
        pass
    return str(item["output"])


async def noted(*texts: str) -> None:
    from django.contrib.auth.models import User

    user = await User.objects.aget(username="ada")
    for text in texts:
        await Note.objects.acreate(user=user, text=text)


async def notes() -> list[str]:
    return sorted([note.text async for note in Note.objects.filter(deleted_at=None)])


async def test_the_user_is_asked_about_the_very_notes_and_only_those_are_deleted(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any]
) -> None:
    await noted("buy milk", "call the milkman", "milk the goats", "feed the cat")
    async with talking(start=able) as (page, upstream):
        asked = await question(page, upstream, "delete_note", '{"words": "milk"}')
        lines = ["milk the goats", "buy milk"]
        assert asked["preview"] == {"title": "Delete these 2 notes?", "lines": lines}
        # Meanwhile one goes, one comes, and one is written anew.
        await Note.objects.filter(text="buy milk").aupdate(text="buy milk and bread")
        await noted("drink milk")
        await allow(page, asked)
        said = await output(upstream)
        assert said.startswith("Deleted: milk the goats. 1 of them was not there any more.")
        kept = ["buy milk and bread", "call the milkman", "drink milk", "feed the cat"]
        assert await notes() == kept


async def test_one_note_is_asked_about_as_one_and_can_be_brought_back(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any]
) -> None:
    await noted("buy milk", "call the milkman")
    async with talking(start=able) as (page, upstream):
        asked = await question(page, upstream, "delete_note", '{"words": "Milk"}')
        assert asked["preview"] == {"title": "Delete this note?", "lines": ["buy milk"]}
        assert await notes() == ["buy milk", "call the milkman"]
        await allow(page, asked)
        assert await output(upstream) == "Deleted: buy milk. It can be brought back for a day."
        assert await notes() == ["call the milkman"]
        await call(upstream, 2, "{}", name="undo_delete_note")
        assert await output(upstream) == "Brought back: buy milk."
        assert await notes() == ["buy milk", "call the milkman"]


async def test_nobody_is_asked_about_what_is_not_there(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any]
) -> None:
    await noted("call the milkman")
    async with talking(start=able) as (page, upstream):
        for number, words in enumerate(("milk", "?!", " "), 1):
            await call(upstream, number, json.dumps({"words": words}), name="delete_note")
            assert await output(upstream) == "There is no such note."
        assert await notes() == ["call the milkman"]
        await page.send({"type": "ping", "seq": page.seq})
        await page.until("pong")
        assert "approval.requested" not in [event["type"] for event in page.seen]


async def test_a_preview_that_is_slow_or_fails_leaves_the_call_itself_to_be_asked_about(
    talking: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registries, "PREVIEW_S", 0.05)
    tools, runs = ToolRegistry(), list[tuple[int, Any, bool]]()

    async def previewed(arguments: Any, capabilities: Any) -> Preview | None:
        await (asyncio.Event().wait() if arguments.n == 1 and not runs else asyncio.sleep(0))
        if arguments.n == 2 and len(runs) == 1:
            raise ZeroDivisionError
        return Preview("Sure?", ("all",), arguments.n)

    async def erase(n: int, context: ToolContext) -> str:
        """Erase something."""
        runs.append((n, context.preview and context.preview.chosen, context.shown))
        return "Erased."

    tools.add(erase, needs_approval=True, preview=previewed)
    monkeypatch.setattr("voiceapp.relay.session.live.registry", tools)
    await Assistant.objects.acreate(slug="eraser", name="Eraser", tools=["erase"])
    async with talking(start={"assistant": "eraser"}) as (page, upstream):
        for number in (1, 2, 3):
            if number == 1:
                # The first one never comes; before its run it is tried once more.
                asked = await question(page, upstream, "erase", '{"n": 1}', number)
                runs.append((0, None, False))
            else:
                asked = await question(page, upstream, "erase", f'{{"n": {number}}}', number)
            assert ("preview" in asked) == (number == 3)
            assert json.loads(asked["arguments"]) == {"n": number}
            if number == 2:
                runs.append((0, None, False))
            await allow(page, asked)
            assert await output(upstream) == "Erased."
            runs[:] = [run for run in runs if run[0]]
    assert runs == [(1, 1, False), (2, 2, False), (3, 3, True)]
