"""One conversation through GA, preview and the embedded engine: the page is told the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.parts.clock import in_its_time, pass_time
from tests.parts.engine_parts import quiet, recording
from tests.parts.engine_server import engine_in_still_time
from tests.parts.page import Page, call_service
from tests.parts.scripted import service
from voiceapp.protocol.dialects import Dialect

pytestmark = pytest.mark.django_db(transaction=True)

FRAME_BYTES = 960
FLOATING = (
    "conversation.item.input_audio_transcription.",
    "audio.item",
    "response.output_audio_transcript.delta",
)
"""What a service may say at any moment, and what comes as often as the answer is long."""


def told(page: Page) -> list[tuple[str, ...]]:
    """Return the page's events but for the floating ones, each with the names of its fields."""
    return [
        (event["type"], *sorted(event.keys() - {"seq", "event_id", "previous_item_id"}))
        for event in page.seen
        if not event["type"].startswith(FLOATING) and event["type"] != "session.ready"
    ]


async def through_a_service(
    dialect: Dialect, page: Page, settings: Any, folder: Any
) -> list[tuple[str, ...]]:
    async with service(dialect) as upstream:
        call_service(settings, upstream, folder)
        await page.connect()
        await page.until("session.ready")
        await upstream.user_turn("hello can you hear me clearly")
        await upstream.begin_answer()
        await upstream.say("Yes.", b"\1\0" * 4800)
        await upstream.end_answer("Yes.")
        await page.until("response.done")
        await page.hang_up()
        return told(page)


async def through_the_engine(page: Page, settings: Any, folder: Any) -> list[tuple[str, ...]]:
    async with engine_in_still_time() as engine:
        settings.VOICE = replace(
            settings.VOICE,
            azure_endpoint="",
            azure_api_version="",
            engine_url=engine.address,
            engine_api_key=settings.VOICE.engine_api_key,
            data_dir=folder,
        )
        await page.connect()
        await page.until("session.ready")
        await speak(page)
        await in_its_time(page.until("response.done"))
        await in_its_time(page.hang_up())
        return told(page)


async def speak(page: Page) -> None:
    """Say the recording, and then nothing."""
    sound = recording("hello") + quiet(1000)
    for at in range(0, len(sound), FRAME_BYTES):
        await page.socket.send_to(bytes_data=sound[at : at + FRAME_BYTES])
        await pass_time(0.02)


async def test_the_page_cannot_tell_the_services_apart(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any
) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    ga = await through_a_service(Dialect.GA, Page(signed_in), settings, tmp_path)
    preview = await through_a_service(Dialect.PREVIEW, Page(signed_in), settings, tmp_path)
    engine = await through_the_engine(Page(signed_in), settings, tmp_path)
    assert [event[0] for event in preview] == [event[0] for event in ga]
    assert [event[0] for event in engine] == [event[0] for event in ga]
    assert preview == ga
