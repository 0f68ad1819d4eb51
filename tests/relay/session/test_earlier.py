"""A conversation that goes on in a new session: with another assistant, another voice, or another day."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model

from tests.parts.page import Page, Talk, answer, heard, rows, scope_of, used
from tests.parts.scripted import Service
from voiceapp.conversation.records import ItemRecord
from voiceapp.records.models import Assistant, Session
from voiceapp.records.store import store
from voiceapp.records.store.writer import writer

pytestmark = pytest.mark.django_db(transaction=True)


async def ready(page: Page) -> dict[str, Any]:
    return await page.until("session.ready")


async def assistant(slug: str, **fields: Any) -> None:
    await Assistant.objects.acreate(slug=slug, name=slug.title(), **fields)


async def begun(scope: dict[str, Any], **start: Any) -> Page:
    page = Page(scope)
    await page.connect(**start)
    return page


def restored(upstream: Service, connection: int) -> list[tuple[str, str]]:
    """Return (role, text) of what a connection of the service was told of before."""
    updates = [n for n, event in enumerate(upstream.received) if event["type"] == "session.update"]
    told = upstream.received[updates[connection] :]
    items = [event["item"] for event in told if event["type"] == "conversation.item.create"]
    return [(item["role"], item["content"][0]["text"]) for item in items if item["type"] == "message"]


async def test_who_said_what_before_a_hand_over_is_known_after_it(
    talking: Talk, able: dict[str, str], signed_in: dict[str, Any]
) -> None:
    async with talking(start=able) as (page, upstream):
        first = page.seen[-1]["session_id"]
        await answer(upstream, page, 100, "I am Able.")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 100, "final": True})
        await page.until("output_audio_buffer.stopped")
        await used(upstream, "hand_over", name="Grace")
        await page.until("session.updated")
        await heard(page, upstream, "I am Grace.", 2)
        await page.until("output_audio_buffer.stopped")
        assert {row["speaker"] for row in await rows(page) if row["role"] == "user"} <= {""}
        again = await begun(signed_in, **{"continue": first})
        await ready(again)
        history = await again.until("session.history")
        assert [(item["text"], item["speaker"]) for item in history["items"]] == [
            ("I am Able.", "Able"), ("I am Grace.", "Grace Hopper")
        ]  # fmt: skip
        await again.hang_up()
        page.closed = 4000


async def test_another_assistant_takes_over_in_a_new_session(
    talking: Talk, signed_in: dict[str, Any]
) -> None:
    await assistant("grace", voice="verse")
    async with talking() as (page, upstream):
        first = page.seen[-1]["session_id"]
        await upstream.user_turn("my name is Ada")
        await answer(upstream, page, 100, "Hello Ada.")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 100, "final": True})
        await page.until("output_audio_buffer.stopped")
        other = await begun(signed_in, assistant="grace", **{"continue": first})
        told = await ready(other)
        assert told["assistant"]["slug"] == "grace"
        assert told["session_id"] != first
        history = await other.until("session.history")
        assert [(item["role"], item["text"], item["speaker"]) for item in history["items"]] == [
            ("user", "my name is Ada", "Assistant"),
            ("assistant", "Hello Ada.", "Assistant"),
        ]
        # The first session is over before the second reads what was said in it.
        assert (await page.until("session.ended"))["reason"] == "continued"
        await page.until("close")
        await upstream.expect("session.update")
        update = await upstream.expect("session.update")
        assert update["session"]["audio"]["output"]["voice"] == "verse"
        await upstream.expect("conversation.item.create")
        await upstream.expect("conversation.item.create")
        assert restored(upstream, 1) == [("user", "my name is Ada"), ("assistant", "Hello Ada.")]
        await upstream.user_turn("and now?", "item_u2", "item_a1")
        await other.until("conversation.item.input_audio_transcription.completed")
        assert [row["generated_text"] for row in await rows(other)] == ["and now?"]
        kept = await Session.objects.aget(id=told["session_id"])
        assert kept.continued_from_id == UUID(first)
        await other.hang_up()


async def test_another_voice_is_one_that_the_assistant_offers(
    talking: Talk, signed_in: dict[str, Any]
) -> None:
    await assistant("choir", voice="alloy", voices=["alloy", "verse"])
    async with talking(start={"assistant": "choir", "voice": "verse"}) as (_, upstream):
        update = await upstream.expect("session.update")
        assert update["session"]["audio"]["output"]["voice"] == "verse"
        refused = await begun(signed_in, assistant="choir", voice="marin")
        assert (await refused.until("notice"))["code"] == "voice_unknown"
        assert (await refused.until("close"))["code"] == 4010


@pytest.mark.parametrize(
    ("wish", "code"), [({"voice": "marin"}, "voice_unknown"), ({"assistant": "nobody"}, "assistant_unknown")]
)
async def test_a_wish_that_is_refused_ends_no_conversation(
    talking: Talk, signed_in: dict[str, Any], wish: dict[str, str], code: str
) -> None:
    async with talking() as (page, upstream):
        first = page.seen[-1]["session_id"]
        refused = await begun(signed_in, **{"continue": first}, **wish)
        assert (await refused.until("notice"))["code"] == code
        await refused.until("close")
        await upstream.user_turn("still there?")
        await answer(upstream, page, 100, "Yes.")
        assert "session.ended" not in [event["type"] for event in page.seen]


async def test_the_same_assistant_speaks_on_where_none_is_named(
    talking: Talk, signed_in: dict[str, Any]
) -> None:
    await assistant("grace")
    async with talking(start={"assistant": "grace"}) as (page, _):
        other = await begun(signed_in, **{"continue": page.seen[-1]["session_id"]})
        assert (await ready(other))["assistant"]["slug"] == "grace"
        await page.until("close")
        await other.hang_up()


async def test_a_chain_of_sessions_is_one_conversation(talking: Talk, signed_in: dict[str, Any]) -> None:
    async with talking() as (page, upstream):
        for number, words in enumerate(["one", "two", "three"]):
            await upstream.user_turn(words, f"item_{number}")
            await page.until("conversation.item.input_audio_transcription.completed")
            if number == 2:
                break
            before = next(e["session_id"] for e in page.seen if e["type"] == "session.ready")
            follower = await begun(signed_in, **{"continue": before})
            await follower.until("session.history")
            await page.until("close")
            page = follower
        await upstream.expect("session.update")
        assert restored(upstream, 2) == [("user", "one"), ("user", "two")]
        await page.hang_up()


async def test_somebody_elses_session_cannot_be_continued(talking: Talk) -> None:
    async with talking() as (page, upstream):
        await upstream.user_turn("a secret")
        await page.until("conversation.item.input_audio_transcription.completed")
        eve = await scope_of("eve")
        for wanted in (_id(page), str(uuid4())):
            other = await begun(eve, **{"continue": wanted})
            assert (await other.until("notice"))["code"] == "session_not_found"
            assert (await other.until("close"))["code"] == 4004
        # Nor was it ended by the attempt.
        await upstream.user_turn("still here", "item_u2")
        await page.until("conversation.item.input_audio_transcription.completed")


def _id(page: Page) -> str:
    return str(next(event["session_id"] for event in page.seen if event["type"] == "session.ready"))


@pytest.mark.parametrize("bad", ["", "x", 3, {"id": "x"}])
async def test_a_bad_id_is_a_bad_start(settings: Any, signed_in: dict[str, Any], bad: Any) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    page = await begun(signed_in, **{"continue": bad})
    assert (await page.until("notice"))["code"] == "bad_start"
    assert (await page.until("close"))["code"] == 4010


async def test_two_hundred_turns_fit_and_calls_stay_in_pairs(
    talking: Talk, signed_in: dict[str, Any]
) -> None:
    user = await get_user_model().objects.aget(username="ada")
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
    for n in range(200):
        role = "user" if n % 2 == 0 else "assistant"
        record = ItemRecord(item_id=f"t{n}", previous_item_id=f"t{n - 1}" if n else None, type="message",
                            role=role, generated_text=f"turn {n} " + "x" * 200, raw={})  # fmt: skip
        writer().save_item(opened.session_id, record)
    for kind, raw in (("function_call", {"name": "clock", "call_id": "c1", "arguments": "{}"}),
                      ("function_call_output", {"call_id": "c1", "output": "noon"}),
                      ("function_call", {"name": "clock", "call_id": "c2", "arguments": "{}"})):  # fmt: skip
        record = ItemRecord(item_id=f"{kind}{raw['call_id']}", previous_item_id=None, type=kind, raw=raw,
                            generated_text=raw.get("output", ""))  # fmt: skip
        writer().save_item(opened.session_id, record)
    await store.close_session(opened.session_id, reason="hung_up", expected=True, duration_ms=1)
    async with talking(start={"continue": str(opened.session_id)}) as (page, upstream):
        history = await page.until("session.history")
        assert [item["item_id"] for item in history["items"]] == [f"t{n}" for n in range(200)]
        await upstream.send({"type": "response.created", "response": {"id": "resp_1", "output": []}})
        await page.until("response.created")
        creates = [event["item"] for event in upstream.sent_to_me("conversation.item.create")]
        assert [item["id"] for item in creates if item["type"] == "message"] == [f"t{n}" for n in range(200)]
        pairs = [(item["type"], item["call_id"]) for item in creates if item["type"] != "message"]
        assert pairs == [("function_call", "c1"), ("function_call_output", "c1")]


async def test_a_voice_that_the_service_will_not_change_is_no_failure(talking: Talk) -> None:
    await assistant("choir", voice="verse")

    def stubborn(upstream: Service) -> None:
        upstream.refuse_voice = "verse"

    async with talking(prepare=stubborn, start={"assistant": "choir"}) as (page, upstream):
        notices = [event["code"] for event in page.seen if event["type"] == "notice"]
        assert notices == ["voice_kept"]
        assert not [event for event in page.seen if event["type"] == "error"]
        last = upstream.sent_to_me("session.update")[-1]
        assert "voice" not in last["session"]["audio"]["output"]
