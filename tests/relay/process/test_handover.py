"""The channel layer fails: nobody answers, and whoever talks goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from channels.layers import get_channel_layer

from tests.parts.clock import pass_time
from tests.parts.page import Talk
from tests.parts.servers import free_port
from voiceapp.relay.process import handover as module
from voiceapp.relay.process.handover import Handover, handover
from voiceapp.relay.session.ending import EndReason

pytestmark = pytest.mark.django_db(transaction=True)


def layer(url: str) -> dict[str, Any]:
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    return {"default": {"BACKEND": backend, "CONFIG": {"hosts": [url]}}}


@pytest.fixture
async def redis_is_away(settings: Any) -> AsyncIterator[None]:
    settings.CHANNEL_LAYERS = layer(f"redis://127.0.0.1:{free_port()}/0")
    yield
    await handover().aclose()
    await get_channel_layer().flush()


async def test_nobody_is_asked_where_there_is_no_layer() -> None:
    asker = Handover()
    assert not asker.available()
    before = asyncio.all_tasks()
    asker.listen()
    assert asyncio.all_tasks() == before, "nobody listens to nothing"


async def test_without_redis_talk_goes_on_and_asking_takes_no_longer_than_it_may(
    redis_is_away: None, talking: Talk
) -> None:
    async with talking() as (page, upstream):
        assert handover().available()
        asked = [handover().ask("nobody", uuid4(), 1, EndReason.MOVED) for _ in range(3)]
        asking = asyncio.gather(*asked)
        await pass_time(module.ANSWER_S + 0.1)
        assert asking.done()
        assert await asking == [None, None, None]
        await upstream.user_turn("still here")
        await page.until("conversation.item.input_audio_transcription.completed")
