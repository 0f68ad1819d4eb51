"""The MCP servers of a session: what they have, and what of it a response may use. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from voiceapp.assistants.mcp_servers import MAX_TOOLS, headers_with
from voiceapp.engine.session.context import Context
from voiceapp.engine.session.items import SessionItem
from voiceapp.errors import ProtocolError
from voiceapp.protocol import events as ev
from voiceapp.text.provider import FunctionTool
from voiceapp.tools.functions import free_name
from voiceapp.tools.mcp.messages import ListMcpTools, McpAddress, McpTool
from voiceapp.tools.mcp.rules import allowed, needs_approval
from voiceapp.types import JsonObject

# A client may name other servers with every update; what it named long ago is forgotten.
_MAX_LISTINGS: Final = 32


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool of a server as a response may use it."""

    server: McpAddress
    tool: McpTool
    needs_approval: bool


@dataclass(slots=True)
class _Listing:
    item_id: str
    tools: tuple[McpTool, ...] = ()
    state: str = "pending"


class McpTools:
    """What the servers said that they have."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._listings: dict[McpAddress, _Listing] = {}

    def want(self, tools: Iterable[JsonObject]) -> None:
        """Ask the servers among ``tools`` that were not asked yet, or in vain."""
        for entry in _servers(tools):
            server = server_of(entry)
            known = self._listings.get(server)
            if known is not None and known.state != "failed":
                continue
            listing = _Listing(self._context.new_id("mcpl"))
            self._context.emit(ev.McpListToolsInProgress, item_id=listing.item_id)
            if sum(one.state == "pending" for one in self._listings.values()) >= _MAX_LISTINGS:
                self._context.emit(ev.McpListToolsFailed, item_id=listing.item_id)
                continue
            self._listings[server] = listing
            self._context.act(ListMcpTools(listing.item_id, server))
        answered = [server for server, listing in self._listings.items() if listing.state != "pending"]
        for server in answered[: max(0, len(self._listings) - _MAX_LISTINGS)]:
            del self._listings[server]

    def listed(self, item_id: str, tools: Sequence[McpTool]) -> None:
        """A server told its tools."""
        found = self._find(item_id)
        if found is None:
            return
        server, listing = found
        known = tuple(tools)[:MAX_TOOLS]
        complete = self._tell(item_id, server, {"tools": [_shown(tool) for tool in known]})
        listing.tools, listing.state = (known, "listed") if complete else ((), "failed")
        self._context.emit(ev.McpListToolsCompleted if complete else ev.McpListToolsFailed, item_id=item_id)

    def failed(self, item_id: str, message: str) -> None:
        """A server did not tell its tools."""
        found = self._find(item_id)
        if found is None:
            return
        server, listing = found
        listing.state = "failed"
        # The event has no room for the reason; the item has.
        self._tell(item_id, server, {"tools": [], "error": message})
        self._context.emit(ev.McpListToolsFailed, item_id=item_id)

    def _find(self, item_id: str) -> tuple[McpAddress, _Listing] | None:
        return next((pair for pair in self._listings.items() if pair[1].item_id == item_id), None)

    def _tell(self, item_id: str, server: McpAddress, fields: JsonObject) -> bool:
        """Add the item; return whether the conversation had room for it."""
        item = SessionItem({"id": item_id, "type": "mcp_list_tools", "server_label": server.label, **fields})
        try:
            self._context.items.admit(item)
        except ProtocolError:
            return False
        previous = self._context.items.last_id
        self._context.items.insert(item, None)
        self._context.emit(ev.ConversationItemAdded, previous_item_id=previous, item=item.snapshot())
        self._context.emit(ev.ConversationItemDone, previous_item_id=previous, item=item.snapshot())
        return True

    # -- for responses ----------------------------------------------------------------------------------

    def pending(self, tools: Iterable[JsonObject]) -> bool:
        """Whether a server among ``tools`` has still to answer."""
        known = (self._listings.get(server_of(entry)) for entry in _servers(tools))
        return any(listing is not None and listing.state == "pending" for listing in known)

    def offers(self, tools: Sequence[JsonObject]) -> dict[str, Offer]:
        """Return the tools of the servers among ``tools`` by the names under which they are offered."""
        taken = {tool["name"] for tool in tools if tool["type"] == "function"}
        room = MAX_TOOLS - len(taken)
        offers: dict[str, Offer] = {}
        for entry in _servers(tools):
            server = server_of(entry)
            listing = self._listings.get(server)
            for tool in listing.tools if listing is not None else ():
                if allowed(entry.get("allowed_tools"), tool) and len(offers) < room:
                    name = free_name(tool.name, server.label, {*taken, *offers})
                    offers[name] = Offer(server, tool, needs_approval(entry.get("require_approval"), tool))
        return offers


def chosen(
    choice: Any, functions: Sequence[FunctionTool], offers: Mapping[str, Offer]
) -> tuple[str, tuple[FunctionTool, ...]]:
    """Return a provider's ``tool_choice`` and tools for the client's ``tool_choice``."""
    tools = (
        *functions,
        *(FunctionTool(name, one.tool.description, one.tool.schema) for name, one in offers.items()),
    )
    if not isinstance(choice, dict):
        return choice, tools
    if choice["type"] == "function":
        return choice["name"], tools
    wanted = [
        name
        for name, offer in offers.items()
        if offer.server.label == choice["server_label"] and choice.get("name") in (None, offer.tool.name)
    ]
    if choice.get("name") is not None and wanted:
        return wanted[0], tools
    # Any tool of that server; where it has none, there is nothing to call.
    return ("required" if wanted else "none"), tuple(tool for tool in tools if tool.name in wanted)


def server_of(entry: JsonObject) -> McpAddress:
    """Return the server that a tool's entry names."""
    headers = headers_with(entry.get("headers"), entry.get("authorization"))
    return McpAddress(entry["server_label"], entry["server_url"], headers)


def _servers(tools: Iterable[JsonObject]) -> Iterator[JsonObject]:
    return (tool for tool in tools if tool["type"] == "mcp")


def _shown(tool: McpTool) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.schema,
        "annotations": tool.annotations,
    }
