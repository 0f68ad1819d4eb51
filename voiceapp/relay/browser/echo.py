"""The socket of the self-check, ``/ws/echo/``: it sends back what it is sent, for some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from channels.exceptions import StopConsumer

from voiceapp.errors import Refusal
from voiceapp.protocol.page import CloseCode
from voiceapp.relay.browser.admission import admit_or_refuse
from voiceapp.relay.browser.login import Login
from voiceapp.serving.budget import Pace
from voiceapp.serving.consumer import SocketConsumer
from voiceapp.types import JsonObject, Part

LIFE_S: Final = 10.0
"""How long the socket lives: a check takes seven seconds on a line whose round trip takes one."""
MAX_BYTES: Final = 64 * 1024
"""What one socket takes in all, twice what a check sends. The answers fit into the connection's own buffers,
so that sending never waits for a page that reads nothing."""
PACE: Final = Pace(messages_a_s=100, messages_at_once=400, bytes_a_s=MAX_BYTES, bytes_at_once=2 * MAX_BYTES)
"""What a check may send: its frames come 50 a second. Empty messages cost no bytes, so they are counted."""

DONE: Final = 1000
UNREADABLE: Final = 1003
TOO_LARGE: Final = 1009
"""Close codes of RFC 6455, 7.4.1."""


class DeviceChecks:
    """The checks that are under way in this process: one for each user."""

    def __init__(self) -> None:
        self._user_ids: set[int] = set()

    def __len__(self) -> int:
        """Return how many are under way."""
        return len(self._user_ids)

    @contextmanager
    def room(self, user_id: int) -> Iterator[None]:
        """Hold a user's place for as long as the context lasts; raise ``Refusal`` where it is taken."""
        if user_id in self._user_ids:
            sentence = "This account checks a device already. Wait ten seconds."
            raise Refusal("too_many_checks", sentence, close_code=CloseCode.TOO_MANY)
        self._user_ids.add(user_id)
        try:
            yield
        finally:
            self._user_ids.discard(user_id)


class EchoConsumer(SocketConsumer):
    """One socket of a page that checks its line: who may talk may open it, one at a time.

    ``scope`` has ``user`` and ``session``, see ``login_stack``. Binary messages come back as they are.
    """

    pace = PACE

    def __init__(self) -> None:
        self._login: Login
        self._taken_bytes = 0

    async def websocket_connect(self, message: JsonObject) -> None:
        """Accept the socket of somebody who may talk, and close it where another one of theirs is open."""
        self._login = await admit_or_refuse(self.scope, self.send)
        await self.send({"type": "websocket.accept"})
        self.start(self._live())

    async def _live(self) -> None:
        """Hold the user's place until the socket's time is up.

        The connection's end cancels this, whatever ends it, and so gives the place back.
        """
        try:
            with device_checks().room(self._login.user_id):
                await asyncio.sleep(LIFE_S)
        except Refusal as refusal:
            await self._close(refusal.close_code, refusal.code)
        await self._close(DONE, "done")

    async def websocket_receive(self, message: JsonObject) -> None:
        """Send a binary message back; close a socket that brings more than a check needs, or text."""
        data = message.get("bytes")
        if data is None:
            await self._close(UNREADABLE, "binary_only")
        self._taken_bytes += len(data)
        if self._taken_bytes > MAX_BYTES:
            await self._close(TOO_LARGE, "too_much")
        await self.send({"type": "websocket.send", "bytes": data})

    async def _close(self, code: int, reason: str) -> NoReturn:
        await self.send({"type": "websocket.close", "code": code, "reason": reason})
        raise StopConsumer


device_checks: Final = Part[DeviceChecks]("table of checks")
