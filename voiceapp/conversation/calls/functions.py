"""Function calls that the model made: each is answered once, and one response follows them all; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from voiceapp.conversation.actions import CallTool
from voiceapp.conversation.records import ToolCallRecord


@dataclass(slots=True)
class PendingCall:
    """A call that is not answered yet. ``lost``: the connection that it came over is gone."""

    call_id: str
    item_id: str
    name: str
    arguments: str
    response_id: str
    started_ms: float
    lost: bool = False


@dataclass(slots=True)
class FunctionCalls:
    """Pending and answered calls of one conversation."""

    pending: dict[str, PendingCall] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    """Calls of this connection, by their ids."""
    answered_before: set[str] = field(default_factory=set)
    """Those of earlier ones, whose ids a new connection may give again."""
    follow_up_due: bool = False
    silent: set[str] = field(default_factory=set)
    """Calls after whose outputs the model is not asked to go on."""

    def call_made(self, call: PendingCall, *, anew: bool = False) -> CallTool | None:
        """Take a call whose arguments are complete; ``None`` where it was seen before.

        ``anew``: its response began on this connection, so that it repeats none of an earlier one.
        """
        if call.call_id in self.pending or call.call_id in self.answered:
            return None
        if call.call_id in self.answered_before and not anew:
            return None
        self.pending[call.call_id] = call
        return CallTool(call.call_id, call.name, call.arguments)

    def call_returned(self, call_id: str, output: str, *, status: str, now: float) -> ToolCallRecord | None:
        """Take a tool's output; ``None`` where the call is unknown or answered already."""
        call = self.pending.pop(call_id, None)
        if call is None:
            return None
        self.answered.add(call_id)
        self.follow_up_due |= call_id not in self.silent
        return ToolCallRecord(
            call_id=call_id,
            item_id=call.item_id,
            name=call.name,
            arguments=call.arguments,
            output=output,
            status=status,
            started_ms=int(call.started_ms),
            ended_ms=int(now),
        )

    def connection_lost(self) -> None:
        """Mark the calls of a connection that is gone: their outputs still come."""
        self.answered_before |= self.answered
        self.answered.clear()
        for call in self.pending.values():
            call.lost = True

    def finish(self, now: float) -> list[ToolCallRecord]:
        """The session ends: what is still running is kept as cancelled."""
        ended = [
            self.call_returned(call_id, "", status="cancelled", now=now) for call_id in list(self.pending)
        ]
        return [saved for saved in ended if saved is not None]

    def take_follow_up(self) -> bool:
        """Return whether a response is due, once, when no call is pending."""
        due = self.follow_up_due and not self.pending
        if due:
            self.follow_up_due = False
        return due
