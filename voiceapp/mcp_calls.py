"""What a service does with the MCP servers of a session: lists, and calls from first to last event; pure.

The service asks the servers itself. Some services say which call a question is about (the call's item has
``approval_request_id``), some ask beside an open call of the same arguments, and some make the call's item
only once it is allowed; all three are understood.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from voiceapp.actions import Action, SaveToolCall, notice
from voiceapp.mcp_servers import McpServer
from voiceapp.protocol import events
from voiceapp.protocol.events import Object

MAX_REASON_CHARS = 300
"""Of a service's reason for a failure; the rest is of no use to whoever talks."""

McpEvent = (
    events.McpListToolsFailed
    | events.McpListToolsInProgress
    | events.McpListToolsCompleted
    | events.ResponseMcpCallArgumentsDelta
    | events.ResponseMcpCallArgumentsDone
    | events.ResponseMcpCallInProgress
    | events.ResponseMcpCallCompleted
    | events.ResponseMcpCallFailed
)


@dataclass(slots=True)
class McpCall:
    """One call. ``status`` is empty until it has ended, or was given up here."""

    item_id: str
    server_label: str
    name: str
    started_ms: int
    arguments: str = ""
    running: bool = False
    request_id: str = ""
    status: str = ""
    output: str = ""

    def record(self, now: float) -> SaveToolCall:
        """Return what is kept of it."""
        name = f"{self.server_label}.{self.name}"
        return SaveToolCall(
            self.item_id,
            self.item_id,
            name,
            self.arguments,
            self.output,
            self.status,
            self.started_ms,
            int(now),
        )


@dataclass(slots=True)
class McpCalls:
    """The calls and lists of one conversation."""

    servers: tuple[McpServer, ...]
    calls: dict[str, McpCall] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    follow_up_due: bool = False

    def open(self) -> Iterator[McpCall]:
        """Yield the calls that have not ended."""
        return (call for call in self.calls.values() if not call.status)

    # -- lists --------------------------------------------------------------------------------------

    def list_item(self, raw: Object) -> None:
        """Take a list's item: the only place that says whose it is, and why there is none."""
        item_id = str(raw.get("id"))
        self.labels[item_id] = str(raw.get("server_label") or "")
        if raw.get("error"):
            self.reasons[item_id] = _reason(raw["error"])

    def not_listed(self, item_id: str) -> Action:
        """Return the notice that a server's tools cannot be had."""
        label = self.labels.get(item_id, "")
        if not label and len(self.servers) == 1:
            label = self.servers[0].server_label
        return no_tools(label, self.reasons.get(item_id, ""))

    # -- calls --------------------------------------------------------------------------------------

    def call_item(self, raw: Object, now: float) -> list[Action]:
        """Take a call's item, new or as it has become."""
        item_id = str(raw.get("id"))
        call = self.calls.get(item_id)
        if call is None:
            call = McpCall(item_id, str(raw.get("server_label", "")), str(raw.get("name", "")), int(now))
            self.calls[item_id] = call
        call.arguments = str(raw.get("arguments") or call.arguments)
        call.request_id = str(raw.get("approval_request_id") or call.request_id)
        status = str(raw.get("status") or "")
        if raw.get("error"):
            return self.ended(item_id, "failed", now, _reason(raw["error"]))
        if raw.get("output") is not None:
            return self.ended(item_id, "completed", now, str(raw["output"]))
        if status == "incomplete" and not call.status:
            # Cut off in its arguments: the call was never made, so there is nothing to go on from.
            call.status = "cancelled"
            return [call.record(now)]
        return []

    def ended(self, item_id: str, status: str, now: float, output: str = "") -> list[Action]:
        """A call came to its end; a later word may bring the output."""
        call = self.calls.get(item_id)
        if call is None or (call.status and (call.output or not output)):
            return []
        if not call.status:
            call.status = status
            self.follow_up_due = True
        call.output = output
        return [call.record(now)]

    def give_up(self, call: McpCall, status: str, now: float) -> SaveToolCall:
        """Wait no longer for a call's end."""
        call.status = status
        return call.record(now)

    def asked_about(self, raw: Object) -> McpCall | None:
        """Return the open call that a service's question is about, if there is one already."""
        request_id = raw.get("id")
        for call in self.open():
            if call.request_id == request_id:
                return call
        wanted = (raw.get("server_label"), raw.get("name"), raw.get("arguments"))
        for call in self.open():
            same = (call.server_label, call.name, call.arguments) == wanted
            if same and not call.request_id and not call.running:
                call.request_id = str(request_id)
                return call
        return None

    def take(self, event: McpEvent, now: float) -> list[Action]:
        """Take an event of a call or of a list."""
        match event:
            case events.McpListToolsFailed():
                return [self.not_listed(event.item_id)]
            case events.ResponseMcpCallCompleted():
                return self.ended(event.item_id, "completed", now)
            case events.ResponseMcpCallFailed():
                return self.ended(event.item_id, "failed", now)
        call = self.calls.get(event.item_id)
        if call is not None:
            if isinstance(event, events.ResponseMcpCallArgumentsDone):
                call.arguments = event.arguments
            elif isinstance(event, events.ResponseMcpCallInProgress):
                call.running = True
        return []


def no_tools(label: str, reason: str) -> Action:
    """Return the notice that the tools of a server cannot be used."""
    whose = f"The tools of “{label}”" if label else "An MCP server’s tools"
    said = f"{whose} cannot be used. {reason}".rstrip()
    return notice("mcp_tools_unavailable", said, "warning", server_label=label)


def _reason(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or error.get("type") or "It failed."
    return str(error)[:MAX_REASON_CHARS]
