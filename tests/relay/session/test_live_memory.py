"""A session that is over gives its memory back at once, and not when a full collection comes by."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import Page, Talk, answer, call, heard, used
from tests.parts.remains import SESSIONS, without_collections
from tests.parts.scripted import Service
from tests.parts.waits import PATIENCE_S, wait_until
from voiceapp.errors import ToolFailed
from voiceapp.protocol.dialects import Dialect
from voiceapp.records.models import Assistant
from voiceapp.records.setup.seeding import TOOLS
from voiceapp.relay.process.sessions import sessions
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.live import LiveSession
from voiceapp.tools.registry import ToolContext, registry

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


# -- nothing is left --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """What a way to end has at hand: a page that talks with a service, and how another page is signed in."""

    page: Page
    upstream: Service
    signed_in: dict[str, Any]

    async def again(self, **start: Any) -> Page:
        """Return another page of the same user's."""
        page = Page(self.signed_in)
        await page.connect(**start)
        return page

    async def leave(self) -> None:
        """Let the page's socket be gone, without a word."""
        await self.page.socket.disconnect()
        self.page.closed = 1006

    def session_id(self) -> UUID:
        """Return the session's id."""
        return next(UUID(one["session_id"]) for one in self.page.seen if one["type"] == "session.ready")


async def _hung_up(scene: Scene) -> None:
    await scene.page.hang_up()


async def _said(scene: Scene) -> None:
    """Speak, be answered, and interrupt."""
    page, upstream = scene.page, scene.upstream
    for _ in range(5):
        await page.socket.send_to(bytes_data=b"\0\0" * 480)
    await upstream.user_turn("Good day.")
    await answer(upstream, page, 2_000, "Good day.", whole=False)
    await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 100, "final": False})
    await upstream.user_turn("Stop.", "item_u2", "item_a1")
    await page.until("audio.cut")


async def _typed(scene: Scene) -> None:
    content = [{"type": "input_text", "text": "Good day."}]
    item = {"type": "message", "role": "user", "content": content}
    await scene.page.send({"type": "conversation.item.create", "item": item})
    await scene.page.send({"type": "response.create"})
    await scene.upstream.expect("response.create")


async def _refused_events(scene: Scene) -> None:
    await scene.page.send({"type": "no.such.event"})
    await scene.page.until("error")
    await scene.page.socket.send_to(bytes_data=b"\0")
    await scene.page.until("error")


async def _page_gone(scene: Scene) -> None:
    await scene.leave()
    await pass_time(6)


async def _idle(scene: Scene) -> None:
    await pass_time(31)
    await scene.page.until("close")


async def _came_back(scene: Scene) -> None:
    await scene.leave()
    again = await scene.again(resume={"session_id": str(scene.session_id()), "seq": scene.page.seq})
    await again.until("session.resumed")
    await again.hang_up()


async def _another_socket(scene: Scene) -> None:
    again = await scene.again(resume={"session_id": str(scene.session_id()), "seq": scene.page.seq})
    await again.until("session.resumed")
    await scene.page.until("close")
    await again.hang_up()


async def _continued(scene: Scene) -> None:
    again = await scene.again(**{"continue": str(scene.session_id())})
    await again.until("session.ready")
    await scene.page.until("close")
    await again.hang_up()


async def _lost_and_called_again(scene: Scene) -> None:
    await scene.upstream.drop()
    await scene.page.until("notice", code="upstream_reconnecting")
    await pass_time(0.6)
    await scene.page.until("session.updated")


async def _lost(scene: Scene) -> None:
    scene.upstream.refuse = 404
    await scene.upstream.drop()
    await pass_time(1)
    await scene.page.until("close")


async def _away_for_long(scene: Scene) -> None:
    scene.upstream.refuse = 503
    await scene.upstream.drop()
    await pass_time(40)
    await scene.page.until("close")


async def _service_hung_up(scene: Scene) -> None:
    await scene.upstream.close(1000)
    await pass_time(1)
    await scene.page.until("session.updated")


async def _renewed(scene: Scene) -> None:
    scene.upstream.expires_in_s = 60
    await _lost_and_called_again(scene)
    scene.upstream.expires_in_s = None
    await pass_time(50)
    await scene.page.until("session.renewed")


async def _broken_off_while_dialling(scene: Scene) -> None:
    scene.upstream.may_begin.clear()
    await scene.upstream.drop()
    await pass_time(0.6)
    await wait_until(lambda: scene.upstream.connections == 2)
    await scene.page.hang_up()
    scene.upstream.may_begin.set()


async def _asked(scene: Scene) -> None:
    """Let a call wait for the user's word to the end."""
    await call(scene.upstream, 1, '{"amount": 5}', name="pay")
    await scene.page.until("approval.requested")


async def _allowed(scene: Scene) -> None:
    await _asked(scene)
    request = scene.page.seen[-1]["approval_request_id"]
    item = {"type": "mcp_approval_response", "approval_request_id": request, "approve": True}
    await scene.page.send({"type": "conversation.item.create", "item": item})
    await scene.page.until("response.tool_call.completed")


async def _calling(name: str, scene: Scene) -> None:
    await call(scene.upstream, 1, '{"number": 1}', name=name)
    await scene.page.until("tool.progress")


async def _waiting_for_a_tool(scene: Scene) -> None:
    await _calling("wait", scene)


async def _a_tool_that_fails(scene: Scene) -> None:
    await call(scene.upstream, 1, "{}", name="fail")
    await scene.page.until("response.tool_call.error")


async def _a_timer(scene: Scene) -> None:
    await used(scene.upstream, "set_timer", seconds=5, label="tea")
    await pass_time(6)


async def _handed_over(scene: Scene) -> None:
    await used(scene.upstream, "hand_over", name="Grace")
    await pass_time(1)
    await scene.page.until("session.assistant")
    await scene.page.until("session.updated")


async def _hung_up_by_the_assistant(scene: Scene) -> None:
    await used(scene.upstream, "hang_up")
    await heard(scene.page, scene.upstream, "Goodbye.", 2)
    await pass_time(1)
    await scene.page.until("close")


async def _moved(scene: Scene) -> None:
    user_id = sessions().live()[0].user_id
    await sessions().let_go(scene.session_id(), user_id, EndReason.MOVED, scene.page.seq)
    await scene.page.until("close")


async def _stopped(scene: Scene) -> None:
    draining = asyncio.ensure_future(sessions().drain())
    await scene.page.until("close")
    await draining
    sessions().draining = False


async def _too_fast(scene: Scene) -> None:
    for _ in range(3_000):
        await scene.page.socket.send_to(text_data="{}")
    await scene.page.until("close")


async def _does_not_read(scene: Scene) -> None:
    await scene.upstream.begin_answer()
    await scene.upstream.say("Long.", b"\0\0" * (24 * 30_000), whole=True)
    await scene.page.hear(1_000_000)
    await pass_time(11)
    await scene.page.until("close")
    await wait_until(lambda: not any(one.attached for one in sessions().live()))
    await pass_time(6)


async def _fault(scene: Scene) -> None:
    [session] = sessions().live()
    session.conversation.tick = None  # type: ignore[assignment, method-assign]
    del session
    await pass_time(1)
    await scene.page.until("close")


async def _fault_of_an_event(scene: Scene) -> None:
    [session] = sessions().live()
    session.conversation.receive_server = None  # type: ignore[assignment, method-assign]
    del session
    await scene.upstream.user_turn("Good day.")
    await scene.page.until("close")


WAYS: Final[dict[str, tuple[Callable[[Scene], Awaitable[None]], dict[str, Any]]]] = {
    "hung up": (_hung_up, {}),
    "spoken and interrupted": (_said, {}),
    "spoken and interrupted, in the preview's dialect": (_said, {"dialect": Dialect.PREVIEW}),
    "without a recording": (_said, {"record_audio": False}),
    "typed": (_typed, {}),
    "events that are refused": (_refused_events, {}),
    "page gone": (_page_gone, {}),
    "idle": (_idle, {"idle_s": 30.0}),
    "longest": (_idle, {"max_session_s": 30.0}),
    "came back": (_came_back, {}),
    "another socket": (_another_socket, {}),
    "continued": (_continued, {}),
    "service lost and called again": (_lost_and_called_again, {}),
    "service lost": (_lost, {}),
    "service away": (_away_for_long, {}),
    "service hung up": (_service_hung_up, {}),
    "renewed": (_renewed, {}),
    "broken off while dialling": (_broken_off_while_dialling, {}),
    "a question open": (_asked, {}),
    "a call allowed": (_allowed, {}),
    "a call under way": (_waiting_for_a_tool, {}),
    "a call that failed": (_a_tool_that_fails, {}),
    "a timer": (_a_timer, {}),
    "handed over": (_handed_over, {}),
    "hung up by the assistant": (_hung_up_by_the_assistant, {}),
    "moved": (_moved, {}),
    "server stopped": (_stopped, {}),
    "too fast": (_too_fast, {}),
    "does not read": (_does_not_read, {}),
    "a fault": (_fault, {}),
    "a fault of an event": (_fault_of_an_event, {}),
}
"""Ways in which a session ends, or that it goes before it is hung up; and the settings that each needs."""


@pytest.fixture
async def teller(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, str]]:
    """Starts a session whose assistant has tools that are asked for, wait, block a thread, and fail."""
    unblock = threading.Event()

    async def wait(number: int, context: ToolContext) -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    def block(number: int, context: ToolContext) -> str:
        """Block a thread for longer than the session lives, and keep what the session lets a tool do."""
        unblock.wait(PATIENCE_S)
        with suppress(ToolFailed):
            context.session.call.end_after_answer()
        return "blocked"

    def pay(amount: int) -> str:
        """Pay an amount."""
        return f"Paid {amount}."

    def fail() -> str:
        """Fail."""
        raise ValueError("no")

    # Those that come along are in it as well.
    monkeypatch.setattr(registry, "_tools", dict(vars(registry)["_tools"]))
    registry.add(wait, progress="Waiting…")
    registry.add(block, progress="Waiting…")
    registry.add(pay, needs_approval=True)
    registry.add(fail)
    own = ["wait", "block", "pay", "fail"]
    await Assistant.objects.acreate(slug="teller", name="Teller", tools=[*own, *TOOLS])
    await Assistant.objects.acreate(slug="grace", name="Grace Hopper", tools=own)
    yield {"assistant": "teller"}
    unblock.set()


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_is_left_of_a_session(
    talking: Talk,
    signed_in: dict[str, Any],
    teller: dict[str, str],
    unlogged: None,
    way: str,
) -> None:
    go, config = WAYS[way]

    async def session() -> None:
        async with talking(grace_s=5.0, start=teller, **config) as (page, upstream):
            await go(Scene(page, upstream, signed_in))

    with without_collections(*SESSIONS) as remains:
        await session()
        await remains.none()


async def test_a_tool_whose_thread_goes_on_holds_nothing_of_its_session(
    talking: Talk, teller: dict[str, str]
) -> None:
    async def session() -> None:
        async with talking(start=teller) as (page, upstream):
            await _calling("block", Scene(page, upstream, {}))

    parts = ("voiceapp.conversation.", "voiceapp.relay.session.live", "voiceapp.relay.upstream.",
             "voiceapp.relay.browser.", "voiceapp.relay.session.outbox")  # fmt: skip
    with without_collections(*parts) as remains:
        await session()
        await remains.none()
