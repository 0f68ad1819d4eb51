"""Running the tools of one session, and showing the page what they say of themselves meanwhile."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import tzinfo
from typing import Any
from uuid import UUID

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.assistants.mcp_servers import McpServer
from voiceapp.config import VoiceConfig
from voiceapp.conversation.actions import Action, CallTool, PreviewCall, SendBrowser
from voiceapp.conversation.calls.mcp import no_tools
from voiceapp.conversation.conversation import Conversation
from voiceapp.errors import ToolError
from voiceapp.protocol.page import CallPreview, ToolProgress
from voiceapp.tools.capabilities import Capabilities
from voiceapp.tools.functions import AskFirst, failure, offered
from voiceapp.tools.http.tools import HttpTools
from voiceapp.tools.mcp.client import McpClient
from voiceapp.tools.mcp.hosting import McpHost
from voiceapp.tools.previews import Preview, shown_preview
from voiceapp.tools.registry import ToolContext, ToolRegistry
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

MAX_PREVIEWS = 64
"""Previews that wait for the user's word: twice the questions that may be open."""
PROGRESS_S = 0.2
"""A tool's sentences reach the page no faster than can be read; of those in between the last one counts."""


class Progress:
    """What one call says of itself; ``tell`` may be called from any thread, and as often as it likes."""

    def __init__(self, call_id: str, show: Callable[[SendBrowser], None]) -> None:
        self._call_id = call_id
        self._show: Callable[[SendBrowser], None] | None = show
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._latest = ""
        self._due = False
        self._next_at = 0.0

    def tell(self, text: str) -> None:
        """Show a sentence: at once where it can be, else soon."""
        self._latest = text
        if self._due:
            return
        self._due = True
        if threading.get_ident() == self._thread and self._loop.time() >= self._next_at:
            self._flush()
            return
        try:
            self._loop.call_soon_threadsafe(self._plan)
        except RuntimeError:
            # The loop is gone, and with it the page.
            return

    def end(self) -> None:
        """Show nothing more: the call has ended, and who keeps this must not keep the session."""
        self._show = None

    def _plan(self) -> None:
        self._loop.call_at(max(self._next_at, self._loop.time()), self._flush)

    def _flush(self) -> None:
        self._due = False
        self._next_at = self._loop.time() + PROGRESS_S
        if self._show is not None:
            self._show(SendBrowser(ToolProgress(call_id=self._call_id, message=self._latest)))


class ToolRuns:
    """The tools of one session: the registry's that its assistant names, its HTTP tools, its MCP servers'.

    ``zone`` is the user's time zone. ``show`` of a call tells the page what the tool says of itself,
    ``capabilities`` is what the session lets the call do.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        session_id: UUID,
        user_id: int,
        assistant: AssistantConfig,
        config: VoiceConfig,
        zone: tzinfo | None = None,
    ) -> None:
        self._zone = zone
        self._previews: dict[str, Preview | None] = {}
        self._registry = registry
        self._session_id = session_id
        self._user_id = user_id
        self._allowed = assistant.tools
        self._servers = assistant.mcp_servers
        private = config.private_addresses
        self._http = HttpTools(assistant.http_tools, assistant.tools, private_allowed=private)
        taken = [*assistant.tools, *self._http.names()]
        self._host = McpHost(McpClient(private_allowed=private), taken)

    def definitions(self) -> list[JsonObject]:
        """Return the tools that are known before any server was asked, as ``session.update`` wants them."""
        return [*self._registry.definitions(self._allowed), *self._http.definitions()]

    def ask_first(self) -> dict[str, AskFirst]:
        """Return those of them that run only once the user allows it, as ``CallFlow`` wants them."""
        asked = self._registry.ask_first(self._allowed)
        own = {name: AskFirst("", name, self._registry.previews(name)) for name in asked}
        return own | self._http.ask_first()

    def listings(
        self, conversation: Conversation, perform: Callable[[list[Action]], None]
    ) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield what asks each MCP server for its tools, and tells the conversation of the answer."""
        for server in self._servers:
            yield self._list(server, conversation, perform)

    async def _list(
        self, server: McpServer, conversation: Conversation, perform: Callable[[list[Action]], None]
    ) -> None:
        try:
            listed = await self._host.list(server)
        except ToolError as error:
            perform([no_tools(server.server_label, error.message)])
            return
        label = server.server_label
        asked = {tool.function: AskFirst(label, tool.tool.name) for tool in listed if tool.asks}
        perform(conversation.tools_listed(offered(tool.definition() for tool in listed), asked))

    def _context(self, call_id: str, progress: Progress, capabilities: Capabilities) -> ToolContext:
        return ToolContext(self._session_id, self._user_id, call_id, progress.tell, capabilities, self._zone)

    async def preview(
        self, call: PreviewCall, show: Callable[[SendBrowser], None], capabilities: Capabilities
    ) -> tuple[CallPreview | None, bool]:
        """Return what a call would do, and whether it would change nothing, so that it may run unasked.

        What is returned is what the run then works on. Where the tool cannot say it in time, or at all, there
        is no preview: the call itself is asked about. Only cancellation is raised.
        """
        progress = Progress(call.call_id, show)
        try:
            context = self._context(call.call_id, progress, capabilities)
            found = await self._registry.preview(call.name, call.arguments, context, self._allowed)
        except ToolError as error:
            logger.info("session %s: no preview of %s (%s)", self._session_id, call.name, error.code)
            return None, False
        finally:
            progress.end()
        if len(self._previews) >= MAX_PREVIEWS:
            # Its call was not allowed, or will find out anew what it would do.
            del self._previews[next(iter(self._previews))]
        self._previews[call.call_id] = found
        return shown_preview(found), found is None

    async def run(
        self, call: CallTool, show: Callable[[SendBrowser], None], capabilities: Capabilities
    ) -> tuple[str, str]:
        """Run a call; return its output and ``completed`` or ``failed``. Only cancellation is raised."""
        progress = Progress(call.call_id, show)
        context = self._context(call.call_id, progress, capabilities)
        if call.call_id in self._previews:
            context = replace(context, preview=self._previews.pop(call.call_id), shown=True)
        try:
            if self._host.has(call.name):
                return await self._host.run(call.name, call.arguments), "completed"
            if self._http.has(call.name):
                return await self._http.run(call.name, call.arguments, context), "completed"
            return await self._registry.run(call.name, call.arguments, context, self._allowed), "completed"
        except ToolError as error:
            return failure(error), "failed"
        finally:
            progress.end()
