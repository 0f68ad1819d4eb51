"""An administrator has a session judged."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from tests.parts.chat_server import answering, chat_server, chunk, sse, text
from tests.parts.reviewing import STOP, TURNS, USAGE, kept_session
from voiceapp.records.models import Evaluation
from voiceapp.review import views
from voiceapp.text.providers import text_engines

pytestmark = pytest.mark.django_db(transaction=True)


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
            await text_engines().aclose()
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
            await text_engines().aclose()
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
            await text_engines().aclose()
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
            await text_engines().aclose()
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
