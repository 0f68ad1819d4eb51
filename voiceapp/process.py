"""What lives as long as the server process: made, drained and closed here, in one order.

Layers below find their part of it in a ``Part`` of their own; only this module fills those. Definitions of
tools (``voiceapp.tools.registry``) are no part of it: they are code, and the same in every process.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Awaitable
from contextlib import ExitStack
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.dispatch import receiver

from voiceapp import config
from voiceapp.config import UpstreamKind, VoiceConfig
from voiceapp.datafolder.processes import Ownerships, ownerships
from voiceapp.engine.inference.loading import ModelLoader, models
from voiceapp.nnrp.backing import TokenBacking
from voiceapp.nnrp.consumer import Connections, connections
from voiceapp.nnrp.events_http import EventsApp, events
from voiceapp.outbound.entra import DefaultCredential, credential
from voiceapp.records.recording.archive import Archiver, archiver
from voiceapp.records.recording.recorder import Disk, disk
from voiceapp.records.store.tokens import KnownTokens, known_tokens
from voiceapp.records.store.writer import Writer, writer
from voiceapp.relay.browser.echo import DeviceChecks, device_checks
from voiceapp.relay.process.handover import Handover, handover
from voiceapp.relay.process.sessions import LiveSessions, sessions
from voiceapp.review.worker import Summaries
from voiceapp.serving.exchange import Exchanges, exchanges
from voiceapp.serving.refusals import Refusals, refusals
from voiceapp.signals import server_stopping, session_ended
from voiceapp.text import structured
from voiceapp.text.model_host.provider import ModelHosts, model_hosts
from voiceapp.text.providers import TextEngines, text_engines
from voiceapp.tools.threads import ToolThreads, tool_threads
from voiceapp.types import Part

logger = logging.getLogger(__name__)


class Process:
    """Everything that lives as long as a server process, or as a command that needs it.

    A context manager: within, every layer finds its part. ``start`` and ``drain`` are for servers; whoever
    has an event loop calls ``aclose`` before it ends.
    """

    def __init__(self) -> None:
        # In the order of the table in ARCHITECTURE.md.
        self.writer = Writer()
        self.ownerships = Ownerships()
        self.recording = Disk()
        self.archiver = Archiver()
        self.tokens = KnownTokens()
        self.tools = ToolThreads()
        self.schemas = structured.schema_threads()
        self.credential = DefaultCredential()
        self.models = ModelLoader()
        self.providers = TextEngines()
        self.hosts = ModelHosts()
        self.refusals = Refusals()
        self.checks = DeviceChecks()
        self.sessions = LiveSessions()
        self.handover = Handover()
        self.summaries = Summaries()
        self.nnrp = Connections(TokenBacking())
        self.events = EventsApp(TokenBacking())
        self.exchanges = Exchanges()
        self._places = ExitStack()
        self._draining: asyncio.Future[None] | None = None

    # -- life -----------------------------------------------------------------------------------------

    def __enter__(self) -> Process:
        """Let every layer find its part here, and signals arrive here."""
        for place, part in self._parts():
            self._places.enter_context(place.use(part))
        return self

    def __exit__(self, *_: object) -> None:
        """Close what can be closed without an event loop; nothing is found any more."""
        self.close()
        self._places.close()

    async def start(self) -> None:
        """Begin to load the engine's models where sessions need them; returns at once."""
        if config.voice_config().upstream_kind is UpstreamKind.EMBEDDED:
            self.models.start()

    async def drain(self) -> None:
        """Begin nothing new and let what is under way end: bounded, see each part. Happens once."""
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())
        await asyncio.shield(self._draining)

    async def _drain(self) -> None:
        self.exchanges.stop_soon()
        # At once: each may take many seconds, and process managers give 30.
        await _ended(
            self.events.drain(),
            self.nnrp.drain(),
            self.summaries.aclose(),
            self.handover.aclose(),
            self.sessions.drain(),
        )

    async def aclose(self) -> None:
        """Drain, then close in the reverse order of making; the writer comes last and keeps the rest."""
        await self.drain()
        await _ended(self.providers.aclose())
        await _ended(self.models.aclose())
        await _ended(self.writer.aclose())
        self.close()

    def close(self) -> None:
        """Write what is left and let go of locks and threads; for the end of the interpreter. Blocks."""
        self.schemas.shutdown(wait=False, cancel_futures=True)
        self.ownerships.release()
        self.writer.stop()

    def _parts(self) -> list[tuple[Part[Any], Any]]:
        return [
            (config.source, _settings),
            (running, self),
            (writer, self.writer),
            (ownerships, self.ownerships),
            (disk, self.recording),
            (archiver, self.archiver),
            (known_tokens, self.tokens),
            (tool_threads, self.tools),
            (structured.threads, self.schemas),
            (credential, self.credential),
            (models, self.models),
            (text_engines, self.providers),
            (model_hosts, self.hosts),
            (refusals, self.refusals),
            (device_checks, self.checks),
            (sessions, self.sessions),
            (handover, self.handover),
            (connections, self.nnrp),
            (events, self.events),
            (exchanges, self.exchanges),
        ]


async def _ended(*endings: Awaitable[None]) -> None:
    """Wait for all; one that fails is logged, and keeps nobody else from ending."""
    for outcome in await asyncio.gather(*endings, return_exceptions=True):
        if isinstance(outcome, BaseException):
            logger.error("a part of the process did not end in order", exc_info=outcome)


running: Final = Part[Process]("process")


def current() -> Process:
    """Return the process that runs; where none does, one that ends with the interpreter.

    Daphne tells an application neither that it starts nor that it stops.
    """
    process = running.get()
    if process is None:
        process = Process().__enter__()
        # Its threads are daemons, so that a process whose server died still ends.
        atexit.register(process.close)
    return process


@receiver(server_stopping)
async def _stop(**_: object) -> None:
    """Uvicorn is about to close its sockets: let everybody say goodbye first."""
    process = running.get()
    if process is not None:
        await process.drain()


@receiver(session_ended)
async def _summarise(session_id: UUID, **_: object) -> None:
    process = running.get()
    if process is not None and config.voice_config().summaries:
        process.summaries.add(session_id)


def _settings() -> VoiceConfig:
    """Return the settings; read each time, as Django's settings may be overridden."""
    found: VoiceConfig = settings.VOICE
    return found
