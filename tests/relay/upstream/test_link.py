"""How long a session lives: pages that leave and come back, services that are lost, renewed or away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore

from tests.parts.clock import pass_time
from tests.parts.page import Page, Talk, answer, rows, seen
from tests.parts.scripted import Service
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.outbound.entra import credential
from voiceapp.records.models import Assistant, Session
from voiceapp.relay.process.sessions import WATCH_S, sessions

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_page_that_comes_back_misses_and_repeats_nothing(
    talking: Talk, signed_in: dict[str, Any]
) -> None:
    async with talking() as (page, upstream):
        ready = page.seen[-1]
        for _ in range(3):
            await page.socket.send_to(bytes_data=b"\0\0" * 480)
        await upstream.begin_answer()
        await upstream.say("One.", b"\1\0" * 24_000)
        await page.hear(24_000 * 2)
        await page.socket.disconnect()
        page.closed = 1006
        await upstream.say(" Two.", b"\2\0" * 24_000)
        await upstream.end_answer("One. Two.")
        again = Page(signed_in)
        await again.connect(resume={"session_id": ready["session_id"], "seq": page.seq})
        resumed = await again.until("session.resumed")
        assert (resumed["lost"], resumed["frames"]) == (False, 3)
        await again.until("response.done")
        assert bytes(again.audio) == b"\2\0" * 24_000
        assert upstream.connections == 1
        await again.hang_up()


async def test_the_service_is_let_go_when_the_page_does_not_come_back(talking: Talk) -> None:
    async with talking(grace_s=0.2) as (page, upstream):
        session_id = page.seen[-1]["session_id"]
        await page.socket.disconnect()
        page.closed = 1006
        await pass_time(0.5)
        async with asyncio.timeout(PATIENCE_S):
            await upstream.closed.wait()
        await ended(session_id)
        assert (await Session.objects.aget(id=session_id)).end_reason == "page_gone"


async def ended(session_id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await Session.objects.aget(id=session_id)).ended_at is None:
            await asyncio.sleep(0.02)


async def test_a_lost_service_is_called_again_with_what_was_said(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("my name is Ada")
        await answer(upstream, page, 100, "Hello Ada.")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 100, "final": True})
        await page.until("output_audio_buffer.stopped")
        await upstream.drop()
        assert (await page.until("notice"))["code"] == "upstream_reconnecting"
        await pass_time(0.5)
        await upstream.expect("session.update")
        await upstream.expect("session.update")
        first = await upstream.expect("conversation.item.create")
        second = await upstream.expect("conversation.item.create")
        assert first["item"]["content"] == [{"type": "input_text", "text": "my name is Ada"}]
        assert second["item"]["content"] == [{"type": "output_text", "text": "Hello Ada."}]
        begun = len(page.seen)
        for create in (first, second):
            item = {**create["item"], "status": "completed"}
            await upstream.send({"type": "conversation.item.added", "item": item})
            await upstream.send({"type": "conversation.item.done", "item": item})
        await upstream.user_turn("and now?", "item_u2")
        await page.until("conversation.item.input_audio_transcription.completed", item_id="item_u2")
        shown = {e["item"]["id"] for e in page.seen[begun:] if e["type"] == "conversation.item.added"}
        assert shown == {"item_u2"}
        assert [row["generated_text"] for row in await rows(page)] == [
            "my name is Ada",
            "Hello Ada.",
            "and now?",
        ]


def renew_early(monkeypatch: Any) -> None:
    """Let the whole life of a line be its last part; it is looked at only as the tests let time pass."""
    monkeypatch.setattr("voiceapp.relay.upstream.link.RENEW_CHECK_S", 2.0)
    monkeypatch.setattr("voiceapp.relay.upstream.link.RENEW_SHARE", 1.0)


async def dialled_again(page: Page, upstream: Service, expires_in_s: float) -> None:
    """Let the service be lost, and give the next line a life of its own."""
    upstream.expires_in_s = expires_in_s
    await upstream.drop()
    await pass_time(0.6)
    await page.until("session.updated")


@pytest.mark.parametrize("expires_in_s", [60.0, -60.0], ids=["a short life", "a clock that is ahead"])
async def test_a_line_that_has_just_begun_is_not_renewed(
    talking: Talk, monkeypatch: Any, expires_in_s: float
) -> None:
    monkeypatch.setattr("voiceapp.relay.upstream.link.RENEW_CHECK_S", 0.02)
    async with talking() as (page, upstream):
        await dialled_again(page, upstream, expires_in_s)
        await pass_time(10)
        assert upstream.connections == 2


async def test_a_line_is_renewed_in_the_last_part_of_a_short_life(talking: Talk, monkeypatch: Any) -> None:
    monkeypatch.setattr("voiceapp.relay.upstream.link.RENEW_CHECK_S", 0.02)
    async with talking() as (page, upstream):
        await dialled_again(page, upstream, 30.0)
        upstream.expires_in_s = None
        await pass_time(10)
        assert upstream.connections == 2
        await pass_time(15)
        await page.until("session.renewed")
        assert upstream.connections == 3


async def test_a_session_is_renewed_before_the_services_cap_at_a_quiet_moment(
    talking: Talk, monkeypatch: Any
) -> None:
    renew_early(monkeypatch)
    async with talking() as (page, first):
        await dialled_again(page, first, 60.0)
        assert first.connections == 2
        # The page has not heard the answer to its end, so the line is kept.
        await answer(first, page, 5_000, "One moment.")
        await pass_time(3)
        assert first.connections == 2
        await page.socket.send_to(bytes_data=b"\1\0" * 480)
        first.expires_in_s = None
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 5000, "final": True})
        await pass_time(3)
        await page.until("session.renewed")
        assert first.connections == 3
        restored = await first.expect("conversation.item.create")
        assert restored["item"]["content"] == [{"type": "output_text", "text": "One moment."}]
        await first.user_turn("still there?", "item_u2")
        await page.until("conversation.item.input_audio_transcription.completed")
        assert [row["generated_text"] for row in await rows(page)] == ["One moment.", "still there?"]


async def test_what_is_said_while_the_next_line_is_dialled_is_not_lost(
    talking: Talk, monkeypatch: Any
) -> None:
    renew_early(monkeypatch)
    async with talking() as (page, upstream):
        await dialled_again(page, upstream, 60.0)
        upstream.may_begin.clear()
        await pass_time(3)
        await wait_until(lambda: upstream.connections == 3)
        speech = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "item_u1"}
        await upstream.send(speech)
        await page.until("input_audio_buffer.speech_started")
        upstream.expires_in_s = None
        talker = upstream.current
        upstream.may_begin.set()
        await upstream.closed.wait()
        upstream.current = talker
        await upstream.user_turn("one more thing")
        await page.until("conversation.item.input_audio_transcription.completed")
        await page.send({"type": "response.create"})
        await answer(upstream, page, 100, "Yes?")
        report = {"type": "playback.report", "item_id": "item_a1", "played_ms": 100, "final": True}
        await page.send(report)
        await pass_time(3)
        await page.until("session.renewed")
        assert [row["generated_text"] for row in await rows(page)] == ["one more thing", "Yes?"]


async def test_at_the_last_moment_a_session_is_renewed_in_mid_answer(talking: Talk, monkeypatch: Any) -> None:
    renew_early(monkeypatch)
    async with talking() as (page, upstream):
        await dialled_again(page, upstream, 4.0)
        upstream.expires_in_s = None
        await page.until("session.renewed")
        assert upstream.connections == 3


async def test_an_answer_that_a_lost_service_owed_is_asked_for_again(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("are you there?")
        await page.send({"type": "response.create"})
        await upstream.expect("response.create")
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        await page.until("response.created")
        await upstream.drop()
        assert (await page.until("response.done"))["response"]["status"] == "failed"
        await pass_time(0.5)
        await upstream.expect("conversation.item.create")
        await upstream.expect("response.create")


async def test_what_is_typed_while_the_service_is_dialled_again_is_kept(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.drop()
        await page.until("notice")
        content = [{"type": "input_text", "text": "are you back?"}]
        await page.send(
            {
                "type": "conversation.item.create",
                "item": {"type": "message", "role": "user", "content": content},
            }
        )
        await page.send({"type": "response.create"})
        await pass_time(0.5)
        assert (await upstream.expect("conversation.item.create"))["item"]["content"] == content
        await upstream.expect("response.create")
        assert len(upstream.sent_to_me("response.create")) == 1


async def test_speech_while_the_service_is_dialled_again_is_kept(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.drop()
        await page.until("notice")
        before = len(upstream.audio)
        for n in range(5):
            await page.socket.send_to(bytes_data=bytes([n, 0]) * 480)
        await pass_time(0.5)
        await page.until("session.updated")
        while len(upstream.audio) < before + 5 * 960:
            await upstream.expect("input_audio_buffer.append")
        assert bytes(upstream.audio[before:]) == b"".join(bytes([n, 0]) * 480 for n in range(5))


async def test_a_service_without_semantic_turns_falls_back_to_silence(
    talking: Talk, signed_in: dict[str, Any]
) -> None:
    detection = {"type": "semantic_vad", "eagerness": "low", "interrupt_response": False}
    await Assistant.objects.acreate(slug="semantic", name="S", turn_detection=detection)

    def refuse(upstream: Service) -> None:
        upstream.refuse_if = "semantic_vad"

    async with talking(prepare=refuse, start={"assistant": "semantic"}) as (page, upstream):
        assert [event["code"] for event in page.seen if event["type"] == "notice"] == ["semantic_vad_refused"]
        last = upstream.sent_to_me("session.update")[-1]
        fallen_back = last["session"]["audio"]["input"]["turn_detection"]
        assert fallen_back == {"type": "server_vad", "interrupt_response": False}


async def test_each_connection_has_a_fresh_token(talking: Talk) -> None:
    tokens = (f"token {n}" for n in range(1, 9))

    class Source:
        def get_token(self, *scopes: str) -> Any:
            assert scopes == ("https://cognitiveservices.azure.com/.default",)
            # Tokens come from a blocking call, which must not run on the event loop.
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            return SimpleNamespace(token=next(tokens))

    with credential.use(Source()):
        async with talking(azure_api_key="") as (page, upstream):
            await upstream.drop()
            await pass_time(0.5)
            await page.until("session.updated")
            sent = [request.headers["Authorization"] for request in upstream.requests]
            assert sent == ["Bearer token 1", "Bearer token 2"]
            assert "api-key" not in upstream.requests[0].headers


async def test_a_service_that_stays_away_ends_the_session_in_words(talking: Talk, monkeypatch: Any) -> None:
    monkeypatch.setattr("voiceapp.relay.upstream.link.PATIENCE_S", 0.5)
    async with talking() as (page, upstream):
        upstream.refuse = 503
        await upstream.drop()
        await pass_time(0.5)
        ended = await page.until("session.ended")
        assert ended["reason"] == "upstream_lost"
        assert (await page.until("close"))["code"] == 4012


async def test_a_drain_keeps_what_was_said_and_tells_the_page(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("keep this")
        await page.until("conversation.item.input_audio_transcription.completed")
        await sessions().drain()
        assert (await page.until("session.ended"))["reason"] == "server_stopped"
        assert (await page.until("close"))["code"] == 4015
        assert [row["generated_text"] for row in await rows(page)] == ["keep this"]
        assert len(sessions()) == 0


async def test_signing_out_ends_the_call(talking: Talk, signed_in: dict[str, Any]) -> None:
    async with talking() as (page, _):
        await SessionStore(signed_in["key"]).aflush()
        await pass_time(WATCH_S)
        assert (await page.until("session.ended"))["reason"] == "signed_out"
        assert (await page.until("close"))["code"] == 4016


async def test_idle_and_too_long_sessions_end(talking: Talk) -> None:
    async with talking(idle_s=5.0) as (page, _):
        await pass_time(4)
        assert page.closed is None
        await pass_time(2)
        assert (await page.until("close"))["code"] == 4008
    async with talking(idle_s=600.0, max_session_s=5.0) as (page, _):
        await pass_time(6)
        assert (await page.until("close"))["code"] == 4013


async def test_a_second_tab_takes_the_session_over(talking: Talk, signed_in: dict[str, Any]) -> None:
    async with talking() as (page, _):
        other = Page(signed_in)
        await other.connect(resume={"session_id": page.seen[-1]["session_id"], "seq": page.seq})
        await other.until("session.resumed")
        assert (await page.until("close"))["code"] == 4017
        await other.hang_up()


async def test_what_a_page_asks_for_again_does_not_go_to_its_old_socket(
    talking: Talk, signed_in: dict[str, Any]
) -> None:
    async with talking() as (page, upstream):
        session_id, has = page.seen[-1]["session_id"], page.seq
        await upstream.begin_answer()
        await upstream.say("One.", b"\1\0" * 24_000)
        await page.hear(24_000 * 2)
        # Its network is another; the server still takes the socket of before for open.
        other = Page(signed_in)
        await other.connect(resume={"session_id": session_id, "seq": has})
        assert (await other.until("session.resumed"))["seq"] == has
        await upstream.end_answer("One.")
        await other.until("response.done")
        assert bytes(other.audio) == b"\1\0" * 24_000
        page.closed = 4017
        await other.hang_up()


async def test_a_session_that_the_service_let_expire_goes_on(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("remember me")
        await page.until("conversation.item.input_audio_transcription.completed")
        expired = {"code": "session_expired", "message": "Your session hit the maximum duration."}
        await upstream.send({"type": "error", "error": expired})
        await upstream.close(1001)
        await page.until("notice", code="upstream_reconnecting")
        await pass_time(0.5)
        restored = await upstream.expect("conversation.item.create")
        assert restored["item"]["content"] == [{"type": "input_text", "text": "remember me"}]
        await page.until("session.updated")
        await upstream.user_turn("still me", "item_u2")
        await page.until("conversation.item.input_audio_transcription.completed", item_id="item_u2")
        assert upstream.connections == 2
        assert not seen(page, "error", "session.ended")
        assert [row["generated_text"] for row in await rows(page)] == ["remember me", "still me"]


@pytest.mark.parametrize(
    ("version", "hint"),
    [("", "needs AZURE_OPENAI_API_VERSION"), ("2025-04-01-preview", "leave AZURE_OPENAI_API_VERSION empty")],
)
async def test_the_page_is_told_which_address_would_be_right(
    talking: Talk, settings: Any, signed_in: dict[str, Any], version: str, hint: str
) -> None:
    """Spelt as a portal gives it: with ``http``, a path and a slash at its end."""
    async with talking() as (_, upstream):
        upstream.refuse = 404
        endpoint = f"{upstream.url.replace('ws://', 'http://')}/openai/v1/"
        settings.VOICE = replace(settings.VOICE, azure_endpoint=endpoint, azure_api_version=version)
        other = Page(signed_in)
        await other.connect()
        ended = await other.until("session.ended")
        assert ended["code"] == "upstream_not_found"
        assert hint in ended["message"]
        path = upstream.requests[-1].path
        assert path == (
            f"/openai/realtime?api-version={version}&deployment=dep" if version
            else "/openai/v1/realtime?model=dep"
        )  # fmt: skip
        await other.until("close")
