"""Between server processes: asking the one that has a session to save it and let it go.

Control messages go over the channel layer; audio never does. Every process listens under its name, which
stands in the rows of its sessions. Nobody has to answer: who asks waits for ``ANSWER_S`` and then decides by
the session's row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from channels.layers import get_channel_layer

from voiceapp.records.store import takeover
from voiceapp.relay.process.sessions import sessions
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.timers import MovingTimer
from voiceapp.types import Part

logger = logging.getLogger(__name__)

ANSWER_S = 3.0
"""How long another process may take to save a session and let it go; the page's own patience is 4 s."""
RETRY_S = 2.0
_ENDINGS = {ending.reason: ending for ending in (EndReason.MOVED, EndReason.CONTINUED)}


@dataclass(frozen=True)
class Released:
    """What another process says of a session that it let go.

    ``seq`` is the last message's number, ``frames`` how many it got of the microphone.
    """

    seq: int
    frames: int
    timers: list[MovingTimer]


class Handover:
    """This process's end. ``listen`` starts it; it ends with the server."""

    def __init__(self) -> None:
        self._listener: asyncio.Task[None] | None = None
        self._listening: asyncio.Future[None]
        self._answers: dict[str, asyncio.Future[Released | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def available(self) -> bool:
        """Whether there is a channel layer to ask others over."""
        return get_channel_layer() is not None

    def listen(self) -> None:
        """Begin to listen, if there is a channel layer and nobody listens yet."""
        layer = get_channel_layer()
        if layer is None or (self._listener is not None and not self._listener.done()):
            return
        loop = asyncio.get_running_loop()
        self._listening = loop.create_future()
        self._listener = loop.create_task(self._keep_listening(layer), name="handover")

    async def ask(
        self, owner: str, session_id: UUID, user_id: int, ending: EndReason, seq: int | None = None
    ) -> Released | None:
        """Ask a process to let a session go; ``None`` where it does not have it or does not answer.

        ``seq`` is the last message that the page has.
        """
        self.listen()
        asked = uuid4().hex
        answer: asyncio.Future[Released | None] = asyncio.get_running_loop().create_future()
        self._answers[asked] = answer
        request = {
            "type": "session.release",
            "ask": asked,
            "reply": takeover.own_name(),
            "session_id": str(session_id),
            "user_id": user_id,
            "reason": ending.reason,
            "seq": seq,
        }
        released: Released | None = None
        with _layer_may_fail():
            try:
                async with asyncio.timeout(ANSWER_S):
                    await asyncio.shield(self._listening)
                    await get_channel_layer().group_send(_group(owner), request)
                    released = await answer
            except TimeoutError:
                logger.warning("session %s: the process that has it does not answer", session_id)
            finally:
                del self._answers[asked]
        return released

    async def _keep_listening(self, layer: Any) -> None:
        while True:
            with _layer_may_fail():
                await self._listen(layer)
            await asyncio.sleep(RETRY_S)

    async def _listen(self, layer: Any) -> None:
        channel = await layer.new_channel()
        await layer.group_add(_group(takeover.own_name()), channel)
        if not self._listening.done():
            self._listening.set_result(None)
        while True:
            self._take(layer, await layer.receive(channel))

    def _take(self, layer: Any, message: dict[str, Any]) -> None:
        if message["type"] == "session.released":
            waiting = self._answers.get(message["ask"])
            if waiting is not None and not waiting.done():
                waiting.set_result(_read(message["released"]))
        elif message["type"] == "session.release":
            task = asyncio.get_running_loop().create_task(self._release(layer, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _release(self, layer: Any, message: dict[str, Any]) -> None:
        ending = _ENDINGS[message["reason"]]
        session = await sessions().let_go(
            UUID(message["session_id"]), message["user_id"], ending, message["seq"]
        )
        released = None
        if session is not None:
            timers = session.capabilities.timers.hand_on()
            released = Released(session.life.last_seq, session.microphone.frames, timers)
        fields = asdict(released) if released else None
        answer = {"type": "session.released", "ask": message["ask"], "released": fields}
        # Whoever asked finds the session let go all the same.
        with _layer_may_fail():
            await layer.group_send(_group(message["reply"]), answer)

    async def aclose(self) -> None:
        """Listen no more."""
        tasks = [task for task in (self._listener, *self._tasks) if task is not None]
        self._listener = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _read(fields: dict[str, Any] | None) -> Released | None:
    if fields is None:
        return None
    return Released(fields["seq"], fields["frames"], [MovingTimer(*timer) for timer in fields["timers"]])


@contextmanager
def _layer_may_fail() -> Iterator[None]:
    """Note that the channel layer failed, and go on: Redis may be away while people talk."""
    try:
        yield
    except Exception as error:
        # The boundary of a package that raises whatever its client of Redis does.
        logger.warning("the channel layer failed (%s)", type(error).__name__)


def _group(process: str) -> str:
    return f"voiceapp.process.{process}"


handover: Final = Part[Handover]("handover between processes")
