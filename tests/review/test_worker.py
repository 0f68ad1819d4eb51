"""Titles and summaries of sessions that are over."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from tests.parts.chat_server import answering, chat_server, sse, text
from tests.parts.reviewing import STOP, TURNS, USAGE, kept_session
from tests.parts.stalls import longest_hold
from tests.parts.waits import PATIENCE_S
from voiceapp.process import Process
from voiceapp.records.models import Session
from voiceapp.review.worker import Summaries, write_summary
from voiceapp.signals import session_ended
from voiceapp.text.providers import text_engines

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_session_that_is_over_gets_title_and_summary_by_the_chat_service(
    user: User, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    night = datetime(2026, 11, 30, 23, 38, tzinfo=UTC)
    await Session.objects.filter(id=session.id).aupdate(started_at=night, time_zone="Asia/Tokyo")
    answer = json.dumps({"title": "A ticket to Hamburg.", "summary": "Two people want to go to Hamburg."})
    async with chat_server(script=sse(text(answer), STOP, USAGE, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            await session_ended.asend(None, session_id=session.id)
            await process.summaries.drained()
            await text_engines().aclose()
    await session.arefresh_from_db()
    assert (session.title, session.summary) == ("A ticket to Hamburg", "Two people want to go to Hamburg.")
    order, told = (message["content"] for message in chat.requests[0]["messages"])
    assert "began at 08:38 on Tuesday, 1 December 2026 (Asia/Tokyo)" in order
    # What was not heard was not said.
    assert "Assistant: When does the train\n" in f"{told}\n"
    assert chat.requests[0]["response_format"]["json_schema"]["schema"]["required"] == ["title", "summary"]


async def test_conversations_that_begin_alike_are_told_apart_by_what_else_was_wanted(user: User) -> None:
    def say(*texts: str) -> Session:
        return kept_session(user, *(("user", text, None) for text in texts))

    eve = await User.objects.acreate(username="eve")
    titles = []
    for texts in (["Set a timer."], ["Set a timer.", "Take a note: buy milk."], ["Set a timer."]):
        session = await sync_to_async(say)(*texts)
        assert await write_summary(session.id)
        await session.arefresh_from_db()
        titles.append(session.heading)
        # Written anew, it does not give way to itself.
        assert await write_summary(session.id)
        await session.arefresh_from_db()
        assert session.heading == titles[-1]
    assert titles == ["Set a timer", "Set a timer; Take a note: buy milk", "Set a timer"]
    others = await sync_to_async(kept_session)(
        eve, ("user", "Set a timer.", None), ("user", "Take a note: x y.", None)
    )
    assert await write_summary(others.id)
    await others.arefresh_from_db()
    assert others.heading == "Set a timer"


async def test_whatever_the_service_writes_is_kept(
    user: User, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    answer = '{"title": "<b>\\ud800\\u0000</b>", "summary": "\\ud800 {{ 7 }}"}'
    async with chat_server(script=sse(text(answer), STOP, USAGE, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            await session_ended.asend(None, session_id=session.id)
            await process.summaries.drained()
            await text_engines().aclose()
    await session.arefresh_from_db()
    assert (session.title, session.summary) == ("<b>\ufffd</b>", "\ufffd {{ 7 }}")


async def test_a_long_conversation_is_summarised_off_the_loop(user: User) -> None:
    said = tuple(("user", f"Sentence {n} tells of trains. " * 300, None) for n in range(200))
    session = await sync_to_async(kept_session)(user, *said)
    own = Summaries()

    async def work() -> None:
        own.add(session.id)
        await own.drained()

    assert await longest_hold(work()) < 0.25


async def test_the_brain_takes_the_users_own_sentences(user: User) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    own = Summaries()
    own.add(session.id)
    await own.drained()
    await session.arefresh_from_db()
    assert session.title == "I want to book a train ticket to Hamburg"
    assert session.summary.startswith("I want to book a train ticket to Hamburg.")
    assert "Hello" not in session.summary


async def test_a_service_that_fails_costs_only_its_own_session_the_title(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await sync_to_async(kept_session)(user, *TURNS)
    second = await sync_to_async(kept_session)(user, *TURNS)
    own = Summaries()
    async with chat_server(status="500 Oops", script=[b"{}"]) as chat:
        with answering(monkeypatch, chat):
            own.add(first.id)
            own.add(UUID(int=0))
            own.add(second.id)
            await own.drained()
            await text_engines().aclose()
    assert len(chat.requests) == 2
    shown = await Session.objects.with_first_words().aget(id=first.id)
    assert shown.title == "Hello, can you hear me?"


async def test_a_server_that_stops_does_not_wait_for_summaries(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    own = Summaries()
    async with chat_server(script=[], hold=asyncio.Event()) as chat:
        with answering(monkeypatch, chat):
            own.add(session.id)
            async with asyncio.timeout(PATIENCE_S):
                while not chat.requests:
                    await asyncio.sleep(0.005)
                await own.aclose()
                await chat.left.wait()
            await text_engines().aclose()


def test_the_command_makes_up_for_what_is_missing(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    session = kept_session(user, *TURNS)
    silent = kept_session(user)
    call_command("summarize")
    assert "Summarised 1 session" in capsys.readouterr().out
    session.refresh_from_db()
    silent.refresh_from_db()
    assert session.heading
    assert not silent.heading
    call_command("summarize")
    assert "Summarised 0 session" in capsys.readouterr().out


def test_titles_and_summaries_are_shown_to_their_owner(user: User, client: Client) -> None:
    session = kept_session(user, *TURNS)
    Session.objects.filter(id=session.id).update(heading="A <b>title</b>", summary="What came of it.")
    client.force_login(user)
    page = client.get(f"/sessions/{session.id}/").content.decode()
    assert "A &lt;b&gt;title&lt;/b&gt;" in page
    assert "What came of it." in page
    assert "A &lt;b&gt;title" in client.get("/sessions/").content.decode()
