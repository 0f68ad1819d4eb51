"""What is asked of MCP servers, and what they bring. Plain data, pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class McpAddress:
    """Where an MCP server is, and the headers to be sent to it, which may hold secrets."""

    label: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of an MCP server; ``schema`` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    schema: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, Any] | None = None

    @property
    def read_only(self) -> bool:
        """Whether the server says that the tool changes nothing."""
        return self.annotations is not None and self.annotations.get("readOnlyHint") is True


@dataclass(frozen=True, slots=True)
class ListMcpTools:
    """Ask a server for its tools; answer with ``McpListed`` or ``McpNotListed``."""

    item_id: str
    server: McpAddress


@dataclass(frozen=True, slots=True)
class CallMcpTool:
    """Call a tool of a server; answer with ``McpCalled``."""

    item_id: str
    server: McpAddress
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class McpListed:
    """A server told its tools."""

    item_id: str
    tools: tuple[McpTool, ...]


@dataclass(frozen=True, slots=True)
class McpNotListed:
    """A server did not tell its tools."""

    item_id: str
    message: str


@dataclass(frozen=True, slots=True)
class McpCalled:
    """A tool brought its output, or ``error``, an object of a type that the protocol knows."""

    item_id: str
    output: str | None
    error: dict[str, Any] | None = None


McpFact = McpListed | McpNotListed | McpCalled
