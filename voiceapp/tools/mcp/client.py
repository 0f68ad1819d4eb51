"""Asking MCP servers, over the official ``mcp`` package and streamable HTTP.

Every operation has a connection of its own, so that a server that dies or forgets takes nothing else along.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from voiceapp.assistants.mcp_servers import MAX_TOOLS
from voiceapp.outbound.guard import Guard
from voiceapp.tools.mcp.messages import (
    CallMcpTool,
    ListMcpTools,
    McpAddress,
    McpCalled,
    McpFact,
    McpListed,
    McpNotListed,
    McpTool,
)
from voiceapp.types import JsonObject

if TYPE_CHECKING:
    from mcp.client import Client

logger = logging.getLogger(__name__)

NOT_INSTALLED: Final = "MCP tools need one more package on the server: python -m pip install mcp==2.3.0."
_LIST_TIMEOUT_S: Final = 15.0
_CALL_TIMEOUT_S: Final = 60.0
_MAX_PAGES: Final = 16
# Both are kept, and read by the model with every answer.
_MAX_OUTPUT_CHARS: Final = 32_000
_MAX_LIST_CHARS: Final = 256_000
_MAX_FAULT_CHARS: Final = 1_000
_TOOL_FAULT: Final = "tool_execution_error"
_INTERNAL_ERROR: Final = -32603
_BAD_STATUS: Final = 400
# The protocol wants a number where no HTTP status came.
_UNREACHABLE: Final = 0


class McpClient:
    """Asks servers on behalf of one session."""

    def __init__(self, *, private_allowed: bool, at_once: int = 8) -> None:
        """``private_allowed`` opens plain HTTP and addresses that are not on the public internet."""
        self._private_allowed = private_allowed
        # One session shall not hold the process's sockets.
        self._turns = asyncio.Semaphore(at_once)

    async def perform(self, action: ListMcpTools | CallMcpTool) -> McpFact:
        """Do what the session wants; only cancellation is raised, faults are facts."""
        async with self._turns:
            if isinstance(action, ListMcpTools):
                return await self._list(action)
            return await self._call(action)

    async def _list(self, action: ListMcpTools) -> McpFact:
        found: list[McpTool] = []

        async def ask(client: Client) -> None:
            found.extend(await _all_tools(client))

        error = await self._ask(action.server, _LIST_TIMEOUT_S, ask)
        if error is None and len(json.dumps([tool.schema for tool in found])) <= _MAX_LIST_CHARS:
            return McpListed(action.item_id, tuple(found))
        message = error["message"] if error else "The MCP server's list of tools is too long."
        logger.info("No tools from an MCP server: %s", message)
        return McpNotListed(action.item_id, message)

    async def _call(self, action: CallMcpTool) -> McpFact:
        called: list[McpCalled] = []

        async def ask(client: Client) -> None:
            result = await client.call_tool(action.name, action.arguments)
            text = _text_of(result)
            error = {"type": _TOOL_FAULT, "message": text} if result.is_error else None
            called.append(McpCalled(action.item_id, None if error else text, error))

        error = await self._ask(action.server, _CALL_TIMEOUT_S, ask)
        # What the tool returned counts, even where the connection does not end well.
        return called[0] if called else McpCalled(action.item_id, None, error)

    async def _ask(
        self, server: McpAddress, timeout_s: float, ask: Callable[[Client], Awaitable[None]]
    ) -> JsonObject | None:
        """Ask a server something; return why that failed, in the form of an event's ``error``."""
        state = _State()
        try:
            async with asyncio.timeout(timeout_s), self._connected(server, state) as client:
                await ask(client)
        except Exception as error:
            # The boundary of a package, and of what a server sends through it.
            return _explain(error, state, timeout_s)
        return None

    @asynccontextmanager
    async def _connected(self, server: McpAddress, state: _State) -> AsyncIterator[Client]:
        try:
            # In a thread and only now: the package is optional, and takes a second to load.
            mcp_http = await asyncio.to_thread(importlib.import_module, "voiceapp.tools.mcp.connection")
        except ImportError:
            raise _Fault(NOT_INSTALLED) from None
        # In a thread as well, as certificates are read for the first one.
        state.guard = await asyncio.to_thread(Guard, private_allowed=self._private_allowed)
        async with mcp_http.connected(server, state.guard) as client:
            yield client


@dataclass(slots=True)
class _State:
    """How far an operation has come, for the explanation of its failure."""

    guard: Guard | None = None


class _Fault(Exception):
    """Why a server cannot be used, as a sentence for the client."""


async def _all_tools(client: Client) -> tuple[McpTool, ...]:
    tools: dict[str, McpTool] = {}
    cursor: str | None = None
    seen: set[str | None] = set()
    # A cursor that comes back leads round in a circle.
    while cursor not in seen and len(seen) < _MAX_PAGES and len(tools) < MAX_TOOLS:
        seen.add(cursor)
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            notes = tool.annotations
            hints = notes.model_dump(by_alias=True, exclude_none=True) if notes else None
            # By its name it is called, so a second of that name could never be.
            tools.setdefault(tool.name, McpTool(tool.name, tool.description or "", tool.input_schema, hints))
        cursor = page.next_cursor
        if not cursor:
            break
    return tuple(tools.values())[:MAX_TOOLS]


def _text_of(result: Any) -> str:
    """Return what a tool brought as text, embedded text among it; what is none is named."""
    text = "\n".join(_words(part) for part in result.content)
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content)
    return text if len(text) <= _MAX_OUTPUT_CHARS else f"{text[:_MAX_OUTPUT_CHARS]} … (cut here)"


def _words(part: Any) -> str:
    """Return one content block in words (Model Context Protocol 2025-06-18, Tool Result)."""
    # What holds the address, the type and the text of a resource that is embedded.
    held = getattr(part, "resource", part)
    text = getattr(held, "text", None)
    if isinstance(text, str):
        return text
    known = [getattr(held, name, None) for name in ("title", "name", "uri", "mime_type", "description")]
    named = dict.fromkeys(str(one)[:_MAX_FAULT_CHARS] for one in known if one)
    return f"({', '.join([str(part.type), *named])})"


# -- faults ---------------------------------------------------------------------------------------------


def _explain(error: BaseException, state: _State, seconds: float) -> dict[str, Any]:
    """Return the protocol's error object for what happened."""
    causes = list(_causes(error))
    guard = state.guard
    if isinstance(error, TimeoutError):
        message = f"The MCP server did not answer within {seconds:g} seconds."
        return {"type": _TOOL_FAULT, "message": message}
    for cause in causes:
        if isinstance(cause, _Fault):
            return {"type": _TOOL_FAULT, "message": str(cause)}
    if guard is not None and guard.fault:
        return {"type": "http_error", "code": _UNREACHABLE, "message": guard.fault}
    if guard is not None and guard.status >= _BAD_STATUS:
        message = f"The MCP server answered with HTTP status {guard.status}."
        return {"type": "http_error", "code": guard.status, "message": message}
    for cause in causes:
        code, text = getattr(cause, "code", None), getattr(cause, "message", None)
        if isinstance(code, int) and isinstance(text, str):
            return {"type": "protocol_error", "code": code, "message": text[:_MAX_FAULT_CHARS]}
    # The text of others' exceptions may hold addresses and secrets; their names do not.
    message = f"The MCP server could not be used ({type(causes[0]).__name__})."
    return {"type": "protocol_error", "code": _INTERNAL_ERROR, "message": message}


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the single faults within a group of them."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    else:
        yield error
