"""A session's summary is written by whoever thought in it: its words go to nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import openai
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.parts.chat_server import answering, chat_server, chunk, sse, text
from tests.parts.hosts import COMPLETED, delta
from tests.parts.reviewing import TURNS, kept_session
from voiceapp.records.models import Session
from voiceapp.review.evaluation import judge
from voiceapp.review.remarks import Remark
from voiceapp.review.summary import summarise
from voiceapp.review.worker import write_summary
from voiceapp.text.chat.service import RemoteCompletions, client_options
from voiceapp.text.model_host.link import HostLink
from voiceapp.text.model_host.provider import model_hosts
from voiceapp.text.providers import text_engines

pytestmark = pytest.mark.django_db(transaction=True)

WRITTEN = json.dumps({"title": "By the chat service", "summary": "It read this."})
THE_USERS_OWN = "I want to book a train ticket to Hamburg"


@asynccontextmanager
async def own_model(user_id: int) -> AsyncIterator[list[Any]]:
    """A host of the user's on this very loop, which writes one summary; what it was asked."""
    asked: list[Any] = []

    async def send(message: str) -> None:
        fields = json.loads(message)
        if fields.get("method") == "model/request":
            asked.append(fields["params"]["request"])
            serving.append(asyncio.create_task(serve(fields)))

    async def serve(fields: dict[str, Any]) -> None:
        ids = {name: fields["params"][name] for name in ("threadId", "turnId", "requestId")}
        await give(id=fields["id"], result={"accepted": True, "rejectionReason": None})
        written = json.dumps({"title": "By my own model", "summary": "It read this."})
        for event in (delta(written), COMPLETED):
            await give(method="model/streamEvent", params={**ids, "event": event})

    async def give(**fields: Any) -> None:
        await link.receive(json.dumps(fields))

    link, serving = HostLink(send), list[asyncio.Task[None]]()
    await give(id=1, method="initialize", params={"clientInfo": {"name": "x"}})
    await give(method="initialized")
    model_hosts().connect(user_id, link)
    try:
        yield asked
    finally:
        model_hosts().disconnect(user_id, link)
        await asyncio.gather(*serving)


NOW = datetime(2026, 12, 1, 8, 38, tzinfo=ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize(
    ("thinking", "connected", "title"),
    [
        ("", False, "By the chat service"),
        ("chat", False, "By the chat service"),
        ("embedded", False, THE_USERS_OWN),
        ("model-host", False, THE_USERS_OWN),
        ("model-host", True, "By my own model"),
    ],
)
async def test_only_the_thinker_reads_what_was_said(
    user: User, monkeypatch: pytest.MonkeyPatch, thinking: str, connected: bool, title: str
) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    configuration = {**session.configuration, "thinking": thinking}
    await Session.objects.filter(id=session.id).aupdate(configuration=configuration)
    stop = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})
    async with chat_server(script=sse(text(WRITTEN), stop, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            async with own_model(user.pk) if connected else nullcontext() as asked:
                assert await write_summary(session.id)
            await text_engines().aclose()
    await session.arefresh_from_db()
    assert session.heading == title
    assert bool(chat.requests) == (title == "By the chat service")
    assert not connected or "Hamburg" in json.dumps(asked)


async def test_a_service_that_refuses_wishes_summarises_and_judges_all_the_same() -> None:
    """Of models that think before they answer some refuse all three."""
    said = [Remark("user", "I want a ticket."), Remark("assistant", "Fine.")]
    end = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})
    judged = {"scores": [{"score": 9, "reason": "Kind."}], "overall": 9, "comment": "Fine."}
    scripts = [
        sse(text(f"<think>Hm.</think>{json.dumps(one)}"), end) for one in (json.loads(WRITTEN), judged)
    ]
    refused = ("max_tokens", "temperature", "response_format")
    # Each refusal is a request of its own: the answers follow them.
    then = [scripts[0], scripts[0], scripts[1], scripts[1]]
    async with chat_server(script=scripts[0], then=then, refuses=refused) as chat:
        client = openai.AsyncOpenAI(base_url=chat.base_url, api_key="none", **client_options())
        made = RemoteCompletions(client, "m", "compatible")
        assert await summarise(said, made, NOW) == ("By the chat service", "It read this.")
        found = await judge(said, ["Was it kind?"], made)
        await made.aclose()
    assert (found.overall, found.scores[0]["score"]) == (9, 9)
    # It was told in words what it did not take otherwise.
    assert "title" in chat.requests[-3]["messages"][0]["content"]
    assert "scores" in chat.requests[-1]["messages"][0]["content"]
