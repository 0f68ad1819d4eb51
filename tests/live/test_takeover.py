"""A page that comes back to another server process: two real ones on one database, with a real Redis."""

from __future__ import annotations

import asyncio
import io
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import soundfile

from tests.parts.page import call
from tests.parts.scripted import Service, service
from tests.parts.servers import (
    REDIS,
    RealPage,
    Server,
    fetched,
    free_port,
    real_page,
    redis_server,
    signed_in,
)
from tests.parts.waits import PATIENCE_S

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(REDIS is None, reason="redis-server is not installed"),
]


@pytest.fixture(scope="module")
def port() -> int:
    """Where the Realtime service is, for as long as the servers run."""
    return free_port()


@pytest.fixture
async def upstream(port: int) -> AsyncIterator[Service]:
    async with service(port=port) as scripted:
        yield scripted


class Pair:
    """Two servers on one data folder, and the pages of one user who is signed in at both."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self._settings = settings
        # One after the other, as the first makes the database, and each start makes a new link.
        self.first = Server(folder, **settings)
        self.first.wait()
        self.cookies = signed_in(self.first.link)
        self.second = Server(folder, **settings)
        self.second.wait()

    def revive(self) -> None:
        """Wake the first up, or start it anew, where a test stopped it."""
        if self.first.process.poll() is None:
            self.first.send(signal.SIGCONT)
        else:
            self.first.stop()
            self.first = Server(self.folder, **self._settings)
            self.first.wait()

    def stop(self) -> None:
        """End both."""
        self.first.stop()
        self.second.stop()

    @asynccontextmanager
    async def talking(self, upstream: Service) -> AsyncIterator[tuple[RealPage, str]]:
        """Begin at the first; yield the page and the session's id."""
        async with real_page(self.first.url, self.cookies) as page:
            ready = await page.until("session.ready")
            yield page, ready["session_id"]

    def resume(self, session_id: str, page: RealPage, **more: Any) -> Any:
        """Come back at the second."""
        resume = {"session_id": session_id, "seq": page.seq, **more}
        return real_page(self.second.url, self.cookies, resume=resume)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("servers")
    with redis_server(folder) as redis:
        settings = {"AZURE_OPENAI_ENDPOINT": f"ws://127.0.0.1:{port}", "AZURE_OPENAI_API_KEY": "k",
                    "AZURE_OPENAI_DEPLOYMENT": "d", "AZURE_OPENAI_TRANSCRIPTION_DEPLOYMENT": "t",
                    "VOICEAPP_REDIS_URL": redis}  # fmt: skip
        pair = Pair(folder, settings)
        yield pair
        pair.stop()


@pytest.fixture
def servers(running: Pair) -> Pair:
    running.revive()
    return running


async def heard(upstream: Service, page: RealPage, words: str, number: int) -> None:
    """Let the service say something, and the page hear all of it."""
    response, item = f"resp_{number}", f"item_a{number}"
    await upstream.begin_answer(response, item)
    await upstream.say(words, b"\1\0" * 12_000, response, item)
    await upstream.end_answer(words, response, item)
    await page.until("response.done")
    await page.send({"type": "playback.report", "item_id": item, "played_ms": 500, "final": True})
    await page.until("output_audio_buffer.stopped")


async def said(upstream: Service, page: RealPage, words: str, number: int) -> None:
    await upstream.user_turn(words, f"item_u{number}")
    await page.until("conversation.item.input_audio_transcription.completed")


async def history_of(upstream: Service, count: int) -> list[str]:
    items = [(await upstream.expect("conversation.item.create"))["item"] for _ in range(count)]
    return [item["content"][0]["text"] for item in items]


async def test_a_session_moves_to_the_process_that_its_page_comes_back_to(
    servers: Pair, upstream: Service
) -> None:
    async with servers.talking(upstream) as (page, session_id):
        for _ in range(25):
            await page.line.send(b"\1\1" * 480)
        await said(upstream, page, "my name is Ada", 1)
        await heard(upstream, page, "Hello Ada.", 1)
        # As long as a loudspeaker takes to play it: what comes after the move has a later place.
        await asyncio.sleep(0.6)
        async with servers.resume(session_id, page) as again:
            resumed = await again.until("session.resumed")
            assert (resumed["session_id"], resumed["seq"]) == (session_id, page.seq)
            assert (resumed["lost"], resumed["frames"]) == (False, 25)
            history = await again.until("session.history")
            assert [item["text"] for item in history["items"]] == ["my name is Ada", "Hello Ada."]
            # The first process's socket is closed in a way that its page does not come back.
            await page.until("session.ended")
            assert (await page.next())["code"] == 4017
            assert await history_of(upstream, 2) == ["my name is Ada", "Hello Ada."]
            await again.until("session.renewed")
            assert upstream.connections == 2
            for _ in range(25):
                await again.line.send(b"\1\1" * 480)
            await said(upstream, again, "and now?", 2)
            await heard(upstream, again, "Still here.", 2)
            await again.send({"type": "session.end"})
            assert (await again.until("session.ended"))["reason"] == "hung_up"
        listed = fetched(f"{servers.second.url}/sessions/", servers.cookies).decode()
        assert listed.count(f'class="card" href="/sessions/{session_id}/"') == 1, "the user sees one session"
        shown = kept(servers, session_id)
        places = [shown.index(words) for words in ("my name is Ada", "Hello Ada.", "and now?", "Still here.")]
        assert places == sorted(places)
        samples = await recording(servers, session_id)
        # Both processes' parts are in it, each half a second on either side.
        for side in (0, 1):
            assert sum(abs(samples[:, side]) > 0) >= 24_000 * 0.9


def kept(servers: Pair, session_id: str) -> str:
    """Return the page of a session, which shows what was kept of it."""
    return fetched(f"{servers.second.url}/sessions/{session_id}/", servers.cookies).decode()


async def recording(servers: Pair, session_id: str) -> Any:
    """Return the samples of a session's recording, once all its parts are in it."""
    async with asyncio.timeout(PATIENCE_S):
        while list((servers.folder / "recordings").glob(f"{session_id}*.wav")):
            await asyncio.sleep(0.05)
    data = fetched(f"{servers.second.url}/sessions/{session_id}/recording.flac", servers.cookies)
    return soundfile.read(io.BytesIO(data))[0]


async def test_an_answer_that_was_owed_is_asked_for_at_the_new_process(
    servers: Pair, upstream: Service
) -> None:
    async with servers.talking(upstream) as (page, session_id):
        await said(upstream, page, "what is new?", 1)
        await upstream.begin_answer()
        await page.until("response.created")
        missed = page.seq - 1
        page.seq = missed
        async with servers.resume(session_id, page) as again:
            assert (await again.until("session.resumed"))["lost"] is True
            history = await again.until("session.history")
            assert [item["text"] for item in history["items"]] == ["what is new?"]
            await upstream.expect("response.create")
            await heard(upstream, again, "This and that.", 2)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
async def test_a_session_is_taken_from_a_process_that_does_not_answer(
    servers: Pair, upstream: Service, how: signal.Signals
) -> None:
    async with AsyncExitStack() as stack:
        page, session_id = await stack.enter_async_context(servers.talking(upstream))
        await page.line.send(b"\1\1" * 480)
        await said(upstream, page, "remember this", 1)
        await heard(upstream, page, "I will.", 1)
        # What was said a quarter of a second ago is kept; on a busy machine, a little later.
        async with asyncio.timeout(PATIENCE_S):
            while "I will." not in await asyncio.to_thread(kept, servers, session_id):
                await asyncio.sleep(0.05)
        servers.first.send(how)
        async with servers.resume(session_id, page, frames=1) as again:
            resumed = await again.until("session.resumed")
            assert (resumed["session_id"], resumed["lost"], resumed["frames"]) == (session_id, True, 1)
            history = await again.until("session.history")
            assert [item["text"] for item in history["items"]] == ["remember this", "I will."]
            await again.until("session.renewed")
            assert upstream.connections == 2
            if how is signal.SIGSTOP:
                # It wakes up, and notices that the session is another's by now; two owners would both write.
                servers.first.send(signal.SIGCONT)
                assert (await page.until("session.ended"))["reason"] == "moved"
                assert (await page.next())["code"] == 4017
            await said(upstream, again, "and this", 2)
            await again.send({"type": "session.end"})
            assert (await again.until("session.ended"))["reason"] == "hung_up"
        shown = kept(servers, session_id)
        assert "remember this" in shown
        assert "and this" in shown


@pytest.mark.parametrize("has_all", [True, False])
async def test_an_answer_that_the_page_has_is_played_on_and_counts_as_heard(
    servers: Pair, upstream: Service, has_all: bool
) -> None:
    async with servers.talking(upstream) as (page, session_id):
        await upstream.begin_answer()
        await upstream.say("A long answer.", b"\1\0" * 240_000)
        await upstream.end_answer("A long answer.")
        await page.until("response.done")
        await page.send({"type": "playback.report", "item_id": "item_a1", "played_ms": 400})
        await page.until("output_audio_buffer.started")
        if not has_all:
            page.seq -= 3
        async with servers.resume(session_id, page) as again:
            assert (await again.until("session.resumed"))["lost"] is not has_all
            [item] = (await again.until("session.history"))["items"]
            assert (item["text"], item["cut_ms"]) == ("A long answer.", None if has_all else 400)


async def test_timers_move_along(servers: Pair, upstream: Service) -> None:
    async with servers.talking(upstream) as (page, session_id):
        await upstream.send({"type": "response.created", "response": {"id": "resp_c", "output": []}})
        await call(upstream, 1, '{"seconds": 2, "label": "tea"}', name="set_timer")
        output = (await upstream.expect("conversation.item.create"))["item"]["output"]
        assert output == "The timer for 2 seconds for tea is set."
        await upstream.send({"type": "response.done", "response": {"id": "resp_c", "status": "completed"}})
        await heard(upstream, page, "It is set.", 1)
        async with servers.resume(session_id, page) as again:
            await again.until("session.renewed")
            while True:
                item = (await upstream.expect("conversation.item.create"))["item"]
                if item.get("role") == "system":
                    break
            assert "for tea is over" in item["content"][0]["text"]
            await upstream.expect("response.create")


async def test_an_unknown_session_and_one_that_is_over_are_not_found(
    servers: Pair, upstream: Service
) -> None:
    unknown = {"session_id": "3f0c2d44-0000-4000-8000-000000000001", "seq": 1}
    async with real_page(servers.second.url, servers.cookies, resume=unknown) as other:
        assert (await other.until("notice"))["code"] == "session_not_found"
        assert (await other.next())["code"] == 4004
    async with servers.talking(upstream) as (page, session_id):
        await page.send({"type": "session.end"})
        await page.until("session.ended")
        await page.next()
        async with servers.resume(session_id, page) as late:
            assert (await late.until("notice"))["code"] == "session_not_found"


async def test_a_conversation_is_continued_from_a_session_of_another_process(
    servers: Pair, upstream: Service
) -> None:
    async with servers.talking(upstream) as (page, session_id):
        await said(upstream, page, "from over there", 1)
        async with real_page(servers.second.url, servers.cookies, **{"continue": session_id}) as other:
            ready = await other.until("session.ready")
            assert ready["session_id"] != session_id
            history = await other.until("session.history")
            assert [item["text"] for item in history["items"]] == ["from over there"]
            assert (await page.until("session.ended"))["reason"] == "continued"
