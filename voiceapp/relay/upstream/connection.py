"""One connection to a Realtime service: dial, send, receive, close.

Messages arrive in a callback on the event loop, already as GA events: the dialect is known from the first
frame, ``session.created``, and not from the address. Sending never waits; what the network does not take
is bounded by ``MAX_UNSENT_BYTES``.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
import time
from collections.abc import Callable
from typing import TypeAlias

import pybase64
from picows import WSCloseCode, WSHandshakeError, WSMsgType, WSTransport, ws_connect

from voiceapp.config import UpstreamKind
from voiceapp.errors import DecodeError, UpstreamClosed, UpstreamError, UpstreamRefused, UpstreamTimeout
from voiceapp.protocol import codec, dialects
from voiceapp.protocol.dialects import Dialect, Half
from voiceapp.protocol.events import Error, Event, SessionCreated, UnknownEvent
from voiceapp.protocol.page import SERVER_MESSAGES
from voiceapp.relay.upstream import target as targets
from voiceapp.relay.upstream.service_socket import MAX_MESSAGE_BYTES, ServiceSocket
from voiceapp.relay.upstream.target import Target
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

MAX_UNSENT_BYTES = 1024 * 1024
"""Bytes that may wait for a service that does not read: 15 s of PCM16 in base64. Then it counts as gone."""

LOG_AGAIN_S = 60.0
"""The same kind of trouble of one connection is logged again after this."""

PING_AFTER_S = 20.0
PING_REPLY_S = 20.0

Receive: TypeAlias = Callable[[Event | UnknownEvent, str], None]
"""Takes an event and its JSON (GA shape); audio deltas come without their JSON."""
Lost: TypeAlias = Callable[[UpstreamError], None]

_APPEND_HEAD = b'{"type":"input_audio_buffer.append","audio":"'
_APPEND_TAIL = b'"}'


class Upstream:
    """An established session with a service. ``open_upstream`` makes one; ``aclose`` ends it."""

    def __init__(
        self, target: Target, listener: ServiceSocket, transport: WSTransport, dialect: Dialect
    ) -> None:
        self.target = target
        self.dialect = dialect
        self._socket = listener
        self._transport = transport
        self._receive: Receive | None = None
        self._lost: Lost | None = None
        self._closing = False
        self._logged_at: dict[str, float] = {}

    def start(self, first: bytes, receive: Receive, lost: Lost) -> None:
        """Deliver the first frame, what came with it, and everything from now on."""
        self._receive = receive
        self._lost = lost
        self._socket.on_end = self._ended
        self._message(first)
        for data in self._socket.early:
            self._message(data)
        self._socket.early.clear()
        self._socket.on_message = self._message
        if self._socket.ended is not None:
            # It was there, and gone, before anybody listened.
            self._ended(self._socket.ended)

    @property
    def disconnected(self) -> bool:
        """Whether the connection has ended."""
        return self._transport.is_disconnected

    def hold(self, waits: bool) -> None:
        """Read nothing while the service ``waits``: it is slowed down by its own network buffers."""
        self._socket.hold(waits)

    def send(self, fields: JsonObject) -> None:
        """Send a client event (GA shape) in the service's dialect."""
        for event in dialects.from_ga(fields, self.dialect, Half.CLIENT):
            self._write(codec.encode_fields(event))

    def send_audio(self, samples: bytes) -> None:
        """Append samples to the input audio buffer; the same message in every dialect."""
        self._write(_APPEND_HEAD + pybase64.b64encode(samples) + _APPEND_TAIL)

    def _write(self, data: bytes) -> None:
        if self._closing or self._transport.is_disconnected:
            return
        self._transport.send(WSMsgType.TEXT, data)
        if (
            self._socket.congested
            and self._transport.underlying_transport.get_write_buffer_size() > MAX_UNSENT_BYTES
        ):
            logger.warning("upstream does not read; connection dropped")
            self._transport.disconnect(graceful=False)

    def _message(self, data: bytes) -> None:
        try:
            if self.dialect is Dialect.GA:
                event, text = codec.decode_server(data)
                if type(event) is UnknownEvent:
                    self._deliver(event, text)
                else:
                    # Without a call more: this is done for every frame.
                    assert self._receive is not None
                    self._receive(event, text)
                return
            for fields in dialects.to_ga(codec.decode_server_fields(data), self.dialect, Half.SERVER):
                fields.pop("seq", None)
                self._deliver(codec.server_event(fields), codec.encode_fields(fields).decode())
        except DecodeError as error:
            self._log_once(f"an event that cannot be read ({error.code})")
            self._socket.count_idle()

    def _deliver(self, event: Event | UnknownEvent, text: str) -> None:
        assert self._receive is not None
        if isinstance(event, UnknownEvent) and event.type in SERVER_MESSAGES:
            # On the page's socket it would pass for a message of the relay's.
            self._log_once("a message of the relay's own kind, which is dropped")
            return
        self._receive(event, text)

    def _log_once(self, sent: str) -> None:
        """Say what is lost: once for each kind and minute, however often a service sends it."""
        now = time.monotonic()
        if now - self._logged_at.get(sent, -math.inf) >= LOG_AGAIN_S:
            self._logged_at[sent] = now
            logger.warning("upstream sent %s", sent)

    def _ended(self, error: UpstreamError) -> None:
        if not self._closing and self._lost is not None:
            self._closing = True
            self._lost(error)

    async def aclose(self) -> None:
        """Close the connection; at most two seconds are given to the service's answer.

        Nothing is delivered any more, and nobody is held to whom it could be.
        """
        self._closing = True
        self._receive = self._lost = None
        self._socket.let_go()
        if self._transport.is_disconnected:
            return
        # Its answer has to be read.
        self._socket.hold(False)
        self._transport.send_close(WSCloseCode.OK)
        try:
            async with asyncio.timeout(2):
                await self._transport.wait_disconnected()
        except TimeoutError:
            logger.info("upstream does not close; connection dropped")
        finally:
            if not self._transport.is_disconnected:
                self._transport.disconnect(graceful=False)


async def open_upstream(target: Target, timeout_s: float) -> tuple[Upstream, bytes]:
    """Dial a service and wait for its first frame; return the connection and that frame.

    Raises ``UpstreamRefused`` or ``UpstreamTimeout`` with a stable code and a plain sentence.
    """
    try:
        async with asyncio.timeout(timeout_s):
            headers = await target.headers()
            listener = ServiceSocket()
            try:
                transport = await _dial(target, headers, listener, timeout_s)
                if transport.is_disconnected and not listener.first.done():
                    # picows returns as if all were well where the connection ends before the handshake does.
                    raise UpstreamRefused("The service cannot be reached.", code="upstream_unreachable")
                first = await listener.first
                dialect = _dialect(first)
            except BaseException:
                listener.abandon()
                raise
    except TimeoutError:
        raise UpstreamTimeout(
            f"The service did not answer within {timeout_s:g} seconds.", code="upstream_timeout"
        ) from None
    except UpstreamClosed as error:
        raise UpstreamRefused(
            "The service closed the connection before the session began.", code="upstream_refused"
        ) from error
    return Upstream(target, listener, transport, dialect), first


async def _dial(
    target: Target, headers: dict[str, str], listener: ServiceSocket, timeout_s: float
) -> WSTransport:
    try:
        transport, _ = await ws_connect(
            lambda: listener,
            target.url,
            extra_headers=headers,
            # Of its own: picows lets go of nothing where whoever waits for the handshake is cancelled.
            websocket_handshake_timeout=timeout_s,
            max_frame_size=MAX_MESSAGE_BYTES,
            max_redirects=0,
            # By ``ServiceSocket``, which counts them.
            enable_auto_pong=False,
            enable_auto_ping=True,
            auto_ping_idle_timeout=PING_AFTER_S,
            auto_ping_reply_timeout=PING_REPLY_S,
        )
        return transport
    except WSHandshakeError as error:
        # picows keeps it where it was raised, so that its traceback would keep all that this call has.
        error.with_traceback(None)
        if error.response is None:
            raise UpstreamRefused(
                "The address does not speak WebSocket.", code="upstream_unreachable"
            ) from error
        wait_s = _retry_after_s(error.response.headers.get("Retry-After"))
        raise targets.refusal(int(error.response.status), target.kind, retry_after_s=wait_s) from error
    except socket.gaierror as error:
        raise UpstreamRefused(
            "The service's name cannot be found. Check AZURE_OPENAI_ENDPOINT.", code="upstream_dns"
        ) from error
    except ssl.SSLError as error:
        raise UpstreamRefused(
            "No secure connection to the service is possible (TLS).", code="upstream_tls"
        ) from error
    except OSError as error:
        raise UpstreamRefused("The service cannot be reached.", code="upstream_unreachable") from error


_FATAL = {
    "invalid_api_key": 401,
    "missing_model": 404,
    "invalid_model": 404,
    "model_not_found": 404,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
}


def _retry_after_s(value: object) -> float:
    """Return the seconds of ``Retry-After`` (RFC 9110, 10.2.3); a date there counts as none."""
    text = str(value or "").strip()
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0


def _dialect(first: bytes) -> Dialect:
    """Return the dialect that the first frame speaks; an ``error`` there is a refusal."""
    try:
        fields = codec.decode_server_fields(first)
    except DecodeError as error:
        raise UpstreamRefused(
            "The service does not speak the Realtime protocol.", code="upstream_protocol"
        ) from error
    if fields["type"] == Error.type_name():
        refusal = fields.get("error")
        code = str(refusal.get("code") or "") if isinstance(refusal, dict) else ""
        raise targets.refusal(_FATAL.get(code.rsplit(".", 1)[-1], 400), UpstreamKind.AZURE_GA)
    if fields["type"] != SessionCreated.type_name():
        raise UpstreamRefused("The service began with an unexpected event.", code="upstream_protocol")
    session = fields.get("session")
    return dialects.detect(session if isinstance(session, dict) else {})
