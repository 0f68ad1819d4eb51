"""MCP servers called from here, for services that do not call them: their tools are offered as functions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from voiceapp.assistants.mcp_servers import MAX_TOOLS, McpServer, scrub
from voiceapp.errors import ToolFailed
from voiceapp.tools.functions import as_text, definition, name_of, read_arguments
from voiceapp.tools.mcp.client import McpClient
from voiceapp.tools.mcp.messages import (
    CallMcpTool,
    ListMcpTools,
    McpAddress,
    McpCalled,
    McpNotListed,
    McpTool,
)
from voiceapp.tools.mcp.rules import allowed, needs_approval
from voiceapp.types import JsonObject


@dataclass(frozen=True, slots=True)
class HostedTool:
    """A server's tool as a function. ``asks`` is whether the user is to allow each call."""

    function: str
    server: McpServer
    tool: McpTool
    asks: bool

    def definition(self) -> JsonObject | None:
        """Return it as ``session.update`` wants it, or ``None``; see ``voiceapp.tools.functions``."""
        return definition(self.function, self.tool.description, self.tool.schema)


class McpHost:
    """The MCP servers of one session. ``taken`` are the names of its other functions."""

    def __init__(self, client: McpClient, taken: Iterable[str]) -> None:
        self._client = client
        self._taken = set(taken)
        self._tools: dict[str, HostedTool] = {}

    def has(self, function: str) -> bool:
        """Whether a function is one of a server's tools."""
        return function in self._tools

    async def list(self, server: McpServer) -> list[HostedTool]:
        """Return the tools of a server that may be used; raise ``ToolFailed`` with the reason for none."""
        listed = await self._client.perform(ListMcpTools("", _address(server)))
        if isinstance(listed, McpNotListed):
            raise ToolFailed(listed.message, code="mcp_tools_unavailable")
        assert not isinstance(listed, McpCalled)
        entry = server.to_ga()
        found: list[HostedTool] = []
        for tool in listed.tools:
            if len(self._taken) >= MAX_TOOLS:
                break
            if not allowed(entry.get("allowed_tools"), tool):
                continue
            name = name_of(server.server_label, tool.name, self._taken)
            self._taken.add(name)
            found.append(HostedTool(name, server, tool, needs_approval(entry["require_approval"], tool)))
        # In a thread: a server's schemas can be long.
        fit = await asyncio.to_thread(lambda: [hosted.definition() is not None for hosted in found])
        found = [hosted for hosted, fits in zip(found, fit, strict=True) if fits]
        self._tools |= {hosted.function: hosted for hosted in found}
        return found

    async def run(self, function: str, arguments: str) -> str:
        """Call a tool with the model's raw arguments; return what it brought as text.

        Raises ``InvalidArguments`` or ``ToolFailed``.
        """
        hosted = self._tools[function]
        given = read_arguments(arguments, dict[str, Any])
        called = await self._client.perform(CallMcpTool("", _address(hosted.server), hosted.tool.name, given))
        assert isinstance(called, McpCalled)
        # A server that quotes what it was sent shall not have it shown.
        if called.error is not None:
            message = scrub(str(called.error["message"]), (hosted.server,))
            raise ToolFailed(message, code=str(called.error["type"]))
        return as_text(function, scrub(called.output or "", (hosted.server,)))


def _address(server: McpServer) -> McpAddress:
    return McpAddress(server.server_label, server.server_url, server.sent_headers())
