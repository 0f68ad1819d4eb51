"""``/ws/model-host/``: where users connect a model of their own, a plain ASGI application."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from voiceapp.errors import TextEngineError
from voiceapp.records.store import tokens
from voiceapp.serving.scope import in_turns, query_of, refuse_upgrade
from voiceapp.text.model_host import provider
from voiceapp.text.model_host.link import HostLink
from voiceapp.types import JsonObject, Receive, Send

logger = logging.getLogger(__name__)


MAX_MESSAGE_CHARS: Final = 4 * 1024 * 1024
NOT_AUTHORIZED, TOO_MANY, TOO_LARGE, SLOW, REVOKED = 4001, 4009, 1009, 4014, 4016
WATCH_S: Final = tokens.FRESH_S
"""How often it is checked that the token still counts."""
WRITE_S: Final = 30.0
"""How long a host may leave what it was sent unread."""


async def model_host_socket(scope: JsonObject, receive: Receive, send: Send) -> None:
    """Serve one host, for as long as its socket lasts."""
    receive = in_turns(receive)
    if (await receive())["type"] != "websocket.connect":
        return
    holder = await tokens.holder_of(scope)
    if holder is None:
        body = {"detail": tokens.ADVICE, "code": "not_authorized"}
        await refuse_upgrade(scope, send, 401, body, close_code=NOT_AUTHORIZED, reason="not_authorized")
        return
    await send({"type": "websocket.accept"})
    sending = asyncio.Lock()

    async def send_text(text: str) -> None:
        try:
            async with sending, asyncio.timeout(WRITE_S):
                await send({"type": "websocket.send", "text": text})
        except OSError:
            # The reader of the socket hears of it as well.
            return

    link = HostLink(send_text, query_of(scope).get("thread", ""))
    try:
        provider.connect(holder.user_id, link)
    except TextEngineError as error:
        await send({"type": "websocket.close", "code": TOO_MANY, "reason": error.code})
        return
    logger.info("model host of user %d connected (token %r)", holder.user_id, holder.name)
    reading = asyncio.create_task(_read(receive, link))
    watching = asyncio.create_task(_revoked(scope))
    try:
        await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
        code, reason = reading.result() if reading.done() else watching.result()
        if code:
            await send({"type": "websocket.close", "code": code, "reason": reason})
    finally:
        provider.disconnect(holder.user_id, link)
        reading.cancel()
        watching.cancel()
        await asyncio.gather(reading, watching, return_exceptions=True)


async def _revoked(scope: JsonObject) -> tuple[int, str]:
    """Return how to close once the token no longer counts."""
    while True:
        await asyncio.sleep(WATCH_S)
        if await tokens.holder_of(scope) is None:
            return REVOKED, "token_revoked"


async def _read(receive: Receive, link: HostLink) -> tuple[int, str]:
    """Read until the socket is gone or is to be closed; return how (0: it is gone)."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return 0, ""
        text = message.get("text")
        if text is None:
            # The protocol has no binary messages; one more that nobody can decode.
            link.drop("a binary message")
            continue
        if len(text) > MAX_MESSAGE_CHARS:
            return TOO_LARGE, "message_too_large"
        try:
            await link.receive(text)
        except TimeoutError:
            return SLOW, "slow_model_host"
