"""``/ws/model-host/``: where users connect a model of their own."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final, NoReturn

from channels.exceptions import StopConsumer

from voiceapp.errors import TextEngineError, VoiceAppError
from voiceapp.records.store import tokens
from voiceapp.records.store.tokens import TokenHolder
from voiceapp.records.store.writer import StoreUnavailable
from voiceapp.serving.consumer import SocketConsumer
from voiceapp.serving.scope import query_of, refuse_upgrade
from voiceapp.text.model_host.link import HostLink
from voiceapp.text.model_host.provider import model_hosts
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)


MAX_MESSAGE_CHARS: Final = 4 * 1024 * 1024
TOO_MANY, TOO_LARGE, SLOW, REVOKED = 4009, 1009, 4014, 4016
WATCH_S: Final = tokens.FRESH_S
"""How often it is checked that the token still counts."""
WRITE_S: Final = 30.0
"""How long a host may leave what it was sent unread."""


class ModelHostConsumer(SocketConsumer):
    """One host's socket."""

    def __init__(self) -> None:
        self._holder: TokenHolder | None = None
        self._link: HostLink
        self._sending = asyncio.Lock()

    async def websocket_connect(self, message: JsonObject) -> None:
        """Connect the host for the user whose token it brings, or refuse it."""
        try:
            holder = await tokens.holder_of(self.scope)
            if holder is None:
                raise tokens.refusal()
        except VoiceAppError as error:
            body = {"detail": error.message, "code": error.code}
            await refuse_upgrade(self.scope, self.send, error, body)
            raise StopConsumer from None
        await self.send({"type": "websocket.accept"})
        self._link = HostLink(self._send_text, query_of(self.scope).get("thread", ""))
        try:
            model_hosts().connect(holder.user_id, self._link)
        except TextEngineError as error:
            await self._close(TOO_MANY, error.code)
        self._holder = holder
        logger.info("model host of user %d connected (token %r)", holder.user_id, holder.name)
        self.start(self._watch_token())

    async def websocket_receive(self, message: JsonObject) -> None:
        """Take a message of the host's."""
        text = message.get("text")
        if text is None:
            # The protocol has no binary messages; one more that nobody can decode.
            self._link.drop("a binary message")
            return
        if len(text) > MAX_MESSAGE_CHARS:
            await self._close(TOO_LARGE, "message_too_large")
        try:
            await self._link.receive(text)
        except TimeoutError:
            await self._close(SLOW, "slow_model_host")

    async def websocket_disconnect(self, message: JsonObject) -> None:
        """The host is gone; what it was asked for fails."""
        if self._holder is not None:
            model_hosts().disconnect(self._holder.user_id, self._link)

    async def _send_text(self, text: str) -> None:
        try:
            async with self._sending, asyncio.timeout(WRITE_S):
                await self.base_send({"type": "websocket.send", "text": text})
        except OSError:
            # The reader of the socket hears of it as well.
            return

    async def _watch_token(self) -> None:
        """Close the socket once the token no longer counts."""
        while True:
            await asyncio.sleep(WATCH_S)
            # While nobody can tell, the token counts as it did.
            with suppress(StoreUnavailable):
                if await tokens.holder_of(self.scope) is None:
                    await self._close(REVOKED, "token_revoked")

    async def _close(self, code: int, reason: str) -> NoReturn:
        await self.send({"type": "websocket.close", "code": code, "reason": reason})
        raise StopConsumer
