"""What is made of a session that is over: title, summary, evaluation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import AsyncClient, Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.chat_server import ChatServer, chat_server, chunk, sse, text
from tests.parts.stalls import longest_hold
from voiceapp.records.models import Evaluation, Item, Session
from voiceapp.review import extractive, views
from voiceapp.review.remarks import MAX_CHARS, Remark, as_text
from voiceapp.review.worker import Summaries, summaries
from voiceapp.signals import session_ended
from voiceapp.text import providers

pytestmark = pytest.mark.django_db(transaction=True)

STOP = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})
USAGE = chunk(usage={"prompt_tokens": 110, "completion_tokens": 30, "total_tokens": 140})


def kept_session(user: User, *turns: tuple[str, str, str | None]) -> Session:
    """Keep a session of (role, text, heard text)."""
    session = Session.objects.create(
        user=user, configuration={"name": "Ada"}, upstream="embedded", process="x",
        started_at=timezone.now(), ended_at=timezone.now(), item_count=len(turns),
    )  # fmt: skip
    for number, (role, words, heard) in enumerate(turns):
        Item.objects.create(
            session=session, item_id=f"i{number}", previous_item_id=f"i{number - 1}" if number else None,
            type="message", role=role, generated_text=words, heard_text=heard, raw={},
        )  # fmt: skip
    return session


TURNS = (
    ("user", "Hello, can you hear me?", None),
    ("assistant", "Yes. What can I do for you?", None),
    ("user", "I want to book a train ticket to Hamburg. The ticket should be for two people.", None),
    ("assistant", "When does the train leave, and from which station?", "When does the train"),
)


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, chat: ChatServer) -> Iterator[None]:
    voice = replace(settings.VOICE, text_base_url=chat.base_url, text_model="upstream-model")
    monkeypatch.setattr(settings, "VOICE", voice)
    monkeypatch.setattr(providers, "_engines", {})
    yield


# -- titles and summaries -----------------------------------------------------------------------------------


async def test_a_session_that_is_over_gets_title_and_summary_by_the_chat_service(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    answer = json.dumps({"title": "A ticket to Hamburg.", "summary": "Two people want to go to Hamburg."})
    async with chat_server(script=sse(text(answer), STOP, USAGE, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            await session_ended.asend(None, session_id=session.id)
            await summaries.drained()
            await providers.aclose()
    await session.arefresh_from_db()
    assert (session.title, session.summary) == ("A ticket to Hamburg", "Two people want to go to Hamburg.")
    told = chat.requests[0]["messages"][1]["content"]
    # What was not heard was not said.
    assert "Assistant: When does the train\n" in f"{told}\n"
    assert chat.requests[0]["response_format"]["json_schema"]["schema"]["required"] == ["title", "summary"]


async def test_whatever_the_service_writes_is_kept(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    answer = '{"title": "<b>\\ud800\\u0000</b>", "summary": "\\ud800 {{ 7 }}"}'
    async with chat_server(script=sse(text(answer), STOP, USAGE, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            await session_ended.asend(None, session_id=session.id)
            await summaries.drained()
            await providers.aclose()
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
            await providers.aclose()
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
            async with asyncio.timeout(5):
                while not chat.requests:
                    await asyncio.sleep(0.005)
                await own.aclose()
                await chat.left.wait()
            await providers.aclose()


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


@given(st.lists(st.text(max_size=80), max_size=8))
def test_whatever_was_said_makes_a_short_title_and_summary_of_it(said: list[str]) -> None:
    title, summary = extractive.title_of(said), extractive.summary_of(said)
    assert len(title) <= extractive.TITLE_CHARS
    assert len(summary) <= extractive.SUMMARY_CHARS
    everything = " ".join(said).lower()
    for word in title.removesuffix("…").lower().split():
        assert word in everything


def test_a_mark_inside_a_number_or_a_name_ends_no_sentence() -> None:
    said = ["Hello! What is 12.5 times 8?", "Does example.com cost 3.50 a month? Tell me!", "Thanks."]
    assert extractive.title_of(said) == "Does example.com cost 3.50 a month"
    assert (
        extractive.title_of(["Convert 12.5 miles to kilometers.\nThanks"])
        == "Convert 12.5 miles to kilometers"
    )
    assert extractive.summary_of(said) == ("What is 12.5 times 8? Does example.com cost 3.50 a month?")


def test_a_greeting_is_no_title() -> None:
    assert extractive.title_of(["Hello, can you hear me clearly?", "Set a timer for six seconds"]) == (
        "Set a timer for six seconds"
    )
    assert extractive.title_of(["Good morning!", "Thanks."]) == ""
    assert (
        extractive.summary_of(["Hi. Take a note: buy milk", "Set a timer"])
        == "Take a note: buy milk. Set a timer."
    )


def test_long_conversations_lose_their_middle() -> None:
    said = [Remark("user", f"Sentence number {number}.") for number in range(5_000)]
    whole = as_text(said)
    assert len(whole) < MAX_CHARS + 100
    assert whole.startswith("User: Sentence number 0.")
    assert whole.endswith("User: Sentence number 4999.")
    assert "left out" in whole


# -- the evaluator ------------------------------------------------------------------------------------------


async def test_an_administrator_has_a_session_judged(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    root = await User.objects.acreate_superuser("root")
    browser = AsyncClient()
    await browser.aforce_login(root)
    judged = {
        "scores": [{"score": 9, "reason": "It asked when."}, {"score": 2, "reason": "<script>x</script>"}],
        "overall": 6,
        "comment": "Fine.",
    }
    address = f"/admin/records/session/{session.id}/"
    async with chat_server(script=sse(text(json.dumps(judged)), STOP, USAGE, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            criteria = {"criteria": "Was it polite?\n\n Was it short? "}
            answer = await browser.post(f"{address}evaluate/", criteria)
            assert answer.headers["location"] == f"{address}change/"
            page = (await browser.get(f"{address}change/")).content.decode()
            await providers.aclose()
    kept = await Evaluation.objects.aget()
    assert (kept.overall, kept.asked_by_id, kept.model, kept.tokens_in) == (6, root.pk, "m", 110)
    assert [score["criterion"] for score in kept.scores] == ["Was it polite?", "Was it short?"]
    assert "6 of 10" in page
    assert "It asked when." in page
    assert "<script>x" not in page
    sent: dict[str, Any] = chat.requests[0]
    assert "1. Was it polite?\n2. Was it short?" in sent["messages"][1]["content"]
    assert sent["temperature"] == 0


async def test_a_judgement_that_no_database_can_hold_is_kept_as_far_as_it_can_be(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    browser = AsyncClient()
    await browser.aforce_login(await User.objects.acreate_superuser("root"))
    half = {"scores": [{"score": 1, "reason": "\ud800\0"}], "overall": 1, "comment": "\ud800\0 <i>"}
    usage = {"prompt_tokens": 10**30, "completion_tokens": -1}
    last = {**chunk(usage=usage), "model": "m" * 500}
    async with chat_server(script=sse(text(json.dumps(half)), last, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            address = f"/admin/records/session/{session.id}/"
            answer = await browser.post(f"{address}evaluate/", {"criteria": "Was it kind?"})
            assert answer.status_code == 302
            assert "\ufffd" in (await browser.get(f"{address}change/")).content.decode()
            await providers.aclose()
    assert (await Evaluation.objects.aget()).comment == "\ufffd\u2400 <i>"


async def test_an_evaluator_that_never_ends_is_not_waited_for(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "TIME_S", 0.2)
    session = await sync_to_async(kept_session)(user, *TURNS)
    browser = AsyncClient()
    await browser.aforce_login(await User.objects.acreate_superuser("root"))
    async with chat_server(script=sse(text("{")), hold=asyncio.Event()) as chat:
        with answering(monkeypatch, chat):
            address = f"/admin/records/session/{session.id}/evaluate/"
            answer = await browser.post(address, {"criteria": "Was it kind?"}, follow=True)
            await providers.aclose()
    assert "took longer than" in answer.content.decode()


async def test_what_keeps_a_session_from_being_judged_is_said(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sync_to_async(kept_session)(user, *TURNS)
    browser = AsyncClient()
    await browser.aforce_login(await User.objects.acreate_superuser("root"))
    address = f"/admin/records/session/{session.id}/"
    page = (await browser.get(f"{address}change/")).content.decode()
    # The built-in brain is no judge: there is no button that could only fail.
    assert "The evaluator needs a language model" in page
    assert 'name="criteria"' not in page
    for criteria, told in (("Was it kind?", "cannot judge conversations"), (" \n", "Give 1 to 20 criteria")):
        answer = await browser.post(f"{address}evaluate/", {"criteria": criteria}, follow=True)
        assert told in answer.content.decode()
    async with chat_server(script=sse(text("I like it."), STOP, "[DONE]")) as chat:
        with answering(monkeypatch, chat):
            answer = await browser.post(f"{address}evaluate/", {"criteria": "Was it kind?"}, follow=True)
            await providers.aclose()
    assert "No answer fitted the schema in 2 attempts" in answer.content.decode()
    assert not await Evaluation.objects.aexists()


def test_only_staff_with_the_right_may_have_sessions_judged(user: User, client: Client) -> None:
    session = kept_session(user, *TURNS)
    address = f"/admin/records/session/{session.id}/evaluate/"
    client.force_login(user)
    assert client.post(address, {"criteria": "x"}).status_code == 302
    user.is_staff = True
    user.save()
    assert client.post(address, {"criteria": "x"}).status_code == 403
    assert client.get(address).status_code == 405
