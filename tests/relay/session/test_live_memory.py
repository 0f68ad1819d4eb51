"""A session that is over gives its memory back at once, and not when a full collection comes by."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import Talk, answer
from tests.parts.waits import wait_until
from voiceapp.relay.process.sessions import sessions
from voiceapp.relay.session.live import LiveSession

pytestmark = pytest.mark.django_db(transaction=True)


def kept(session: LiveSession) -> tuple[int, int]:
    """Return how many messages for the page, and turns of the user, a session still holds."""
    outbox = session.outbox
    return outbox.last_seq - outbox.acknowledged_seq, session.conversation.user_turns


@pytest.mark.parametrize("ends", ["hung up", "lost", "gone"])
async def test_what_was_said_is_given_back_with_the_session(talking: Talk, ends: str) -> None:
    async with talking(grace_s=5.0) as (page, upstream):
        ready = page.seen[-1]
        [session] = sessions().live()
        assert str(session.id) == ready["session_id"]
        content = [{"type": "input_text", "text": "Good day."}]
        item = {"id": "item_u1", "type": "message", "role": "user", "content": content}
        await upstream.send({"type": "conversation.item.done", "item": item})
        await answer(upstream, page, 1_000, "Good day.")
        assert kept(session)[1] == 1
        if ends == "lost":
            upstream.refuse = 404
            await upstream.drop()
            await page.until("close")
        elif ends == "gone":
            await page.socket.disconnect()
            page.closed = 1001
            await pass_time(6)
    await wait_until(lambda: not len(sessions()))
    await wait_until(lambda: kept(session) == (0, 0))
    assert session.id == UUID(ready["session_id"])
