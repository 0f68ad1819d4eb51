"""What a service does with the MCP servers of a session: lists, and calls from first to last event; pure.

The service asks the servers itself. Some services say which call a question is about (the call's item has
``approval_request_id``), some ask beside an open call of the same arguments, and some make the call's item
only once it is allowed; all three are understood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from voiceapp.assistants.mcp_servers import McpServer
from voiceapp.conversation.actions import Action, Save, SendBrowser
from voiceapp.conversation.calls.shown import CallEvents
from voiceapp.conversation.records import ToolCallRecord
from voiceapp.protocol import events
from voiceapp.protocol.page import Notice
from voiceapp.types import JsonObject

MAX_REASON_CHARS = 300
"""Of a service's reason for a failure; the rest is of no use to whoever talks."""

ENDED_MS = 120_000.0
"""A call that was made, and allowed where that was wanted, ends within this, or is waited for no longer.

It is twice what the embedded engine gives a server.
"""

EXPLAINED_MS = 1000.0
"""Within this after ``response.mcp_call.failed`` the call's item says why."""

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
    since_ms: float = 0.0
    running: bool = False
    request_id: str = ""
    status: str = ""
    output: str = ""

    def record(self, now: float) -> ToolCallRecord:
        """Return what is kept of it."""
        return ToolCallRecord(
            call_id=self.item_id,
            item_id=self.item_id,
            name=f"{self.server_label}.{self.name}",
            arguments=self.arguments,
            output=self.output,
            status=self.status,
            started_ms=self.started_ms,
            ended_ms=int(now),
        )


@dataclass(slots=True)
class McpCalls:
    """The calls and lists of one conversation."""

    servers: tuple[McpServer, ...]
    shown: CallEvents
    calls: dict[str, McpCall] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    follow_up_due: bool = False
    unexplained: dict[str, float] = field(default_factory=dict)

    def open(self) -> Iterator[McpCall]:
        """Yield the calls that have not ended."""
        return (call for call in self.calls.values() if not call.status)

    # -- lists --------------------------------------------------------------------------------------

    def list_item(self, raw: JsonObject) -> None:
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

    def call_item(self, raw: JsonObject, index: int | None, now: float) -> list[Action]:
        """Take a call's item, new or as it has become; ``index`` is its place in the response, if known."""
        item_id = str(raw.get("id"))
        call = self.calls.get(item_id)
        if call is None:
            label, name = str(raw.get("server_label", "")), str(raw.get("name", ""))
            call = McpCall(item_id, label, name, int(now), since_ms=now)
            self.calls[item_id] = call
        call.arguments = str(raw.get("arguments") or call.arguments)
        call.request_id = str(raw.get("approval_request_id") or call.request_id)
        actions = [*self._begin(call, index)]
        if raw.get("error"):
            error = raw["error"] if isinstance(raw["error"], dict) else {"message": str(raw["error"])}
            return [*actions, *self.ended(item_id, "failed", now, _reason(error), error)]
        if raw.get("output") is not None:
            return [*actions, *self.ended(item_id, "completed", now, str(raw["output"]))]
        if raw.get("status") == "incomplete" and not call.status:
            # Cut off in its arguments: the call was never made, so there is nothing to go on from.
            actions += self.give_up(call, "cancelled", now)
        return actions

    def _begin(self, call: McpCall, index: int | None) -> list[Action]:
        """Show a call once its place is known, and its arguments once they are."""
        actions: list[Action] = []
        if index is not None and not call.status:
            actions += self.shown.call_started(call.item_id, call.item_id, index, call.name)
        if call.arguments:
            actions += self.shown.arguments_done(call.item_id, call.arguments)
        return actions

    def ended(
        self, item_id: str, status: str, now: float, output: str = "", error: JsonObject | None = None
    ) -> list[Action]:
        """A call came to its end; a later word may bring the output or the error."""
        call = self.calls.get(item_id)
        if call is None or (call.status and (call.output or not output)):
            return []
        if not call.status:
            call.status = status
            self.follow_up_due = True
        call.output = output
        actions: list[Action] = [Save(call.record(now))]
        if status == "completed":
            actions += self.shown.call_completed(item_id)
        elif error is not None:
            actions += self.shown.call_failed(item_id, {**error, "message": output})
        else:
            self.unexplained[item_id] = now + EXPLAINED_MS
        return actions

    def give_up(self, call: McpCall, status: str, now: float, code: str = "cancelled") -> list[Action]:
        """Wait no longer for a call's end."""
        call.status = status
        message = call.output or "The call came to no end."
        return [
            Save(call.record(now)),
            *self.shown.call_failed(call.item_id, {"code": code, "message": message}),
        ]

    def unexplained_by(self, now: float) -> list[Action]:
        """Show the calls that failed, and whose reason the service has not told in time."""
        due = [item_id for item_id, until in self.unexplained.items() if until <= now]
        actions: list[Action] = []
        for item_id in due:
            del self.unexplained[item_id]
            actions += self.shown.call_failed(item_id, {"type": "mcp_error"})
        return actions

    def hanging(self, now: float, waiting: Collection[str]) -> list[McpCall]:
        """Return the calls that should have ended, but for those ``waiting`` for the user."""
        return [
            call for call in self.open() if now - call.since_ms >= ENDED_MS and call.item_id not in waiting
        ]

    def asked_about(self, raw: JsonObject) -> McpCall | None:
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
        if call is None:
            return []
        match event:
            case events.ResponseMcpCallArgumentsDelta():
                return [
                    *self._begin(call, event.output_index),
                    *self.shown.arguments_delta(call.item_id, event.delta),
                ]
            case events.ResponseMcpCallArgumentsDone():
                call.arguments = event.arguments
                return self._begin(call, event.output_index)
            case events.ResponseMcpCallInProgress():
                call.running, call.since_ms = True, now
                return self._begin(call, event.output_index)
        return []


def no_tools(label: str, reason: str) -> SendBrowser:
    """Return the notice that the tools of a server cannot be used."""
    subject = f"The tools of “{label}”" if label else "An MCP server’s tools"
    said = f"{subject} cannot be used. {reason}".rstrip()
    return SendBrowser(
        Notice(code="mcp_tools_unavailable", message=said, level="warning", server_label=label, reason=reason)
    )


def _reason(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or error.get("type") or "It failed."
    return str(error)[:MAX_REASON_CHARS]
