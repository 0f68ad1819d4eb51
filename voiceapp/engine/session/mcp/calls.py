"""Calls of MCP tools, from the model's last argument to the result. Pure.

A call outlives its response: the client may take its time to approve it, and what a tool has done is told to
the model even if the user spoke meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from voiceapp.engine.session import validation
from voiceapp.engine.session.context import Context
from voiceapp.engine.session.items import SessionItem
from voiceapp.engine.session.mcp.tools import Offer
from voiceapp.protocol import events as ev
from voiceapp.tools.mcp.messages import CallMcpTool
from voiceapp.types import JsonObject

# Approvals may never come; whoever has so many open is not asked for more.
_MAX_OPEN: Final = 32


@dataclass(slots=True)
class HostedMcpCall:
    """One call: its item, and its place in the response that made it."""

    item: SessionItem
    offer: Offer
    response_id: str
    output_index: int
    in_conversation: bool
    running: bool = False


class HostedMcpCalls:
    """The calls that have not ended."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._calls: dict[str, HostedMcpCall] = {}

    def begin(self, call: HostedMcpCall) -> None:
        """Take a call whose arguments are complete; it runs at once unless it is to be approved first."""
        if len(self._calls) >= _MAX_OPEN:
            self._end(call, None, _refusal(f"At most {_MAX_OPEN} calls may be open at once."))
            return
        self._calls[call.item.id] = call
        if call.item.fields["approval_request_id"] is None:
            self._run(call)

    def _run(self, call: HostedMcpCall) -> None:
        fields = call.item.fields
        call.running = True
        self._context.emit(ev.ResponseMcpCallInProgress, item_id=call.item.id, output_index=call.output_index)
        try:
            arguments = json.loads(fields["arguments"] or "{}")
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            self._context.act(CallMcpTool(call.item.id, call.offer.server, call.offer.tool.name, arguments))
        else:
            self.called(call.item.id, None, _refusal("The arguments are no JSON object."))

    # -- approval ---------------------------------------------------------------------------------------

    def check(self, answer: SessionItem) -> None:
        """Raise ``ProtocolError`` where an approval answers no open request."""
        if self._asked(answer) is None:
            request_id = answer.fields["approval_request_id"]
            raise validation.refuse(
                "invalid_approval_request_id",
                f"MCP approval request with id '{request_id}' not found, or it was answered already.",
                "item.approval_request_id",
            )

    def answer(self, answer: SessionItem) -> None:
        """Run or drop the call that was waiting for ``answer``, which was checked."""
        call = self._asked(answer)
        if call is None:
            return
        if answer.fields["approve"]:
            self._run(call)
            return
        reason = answer.fields.get("reason")
        said = f"The user did not approve this call: {reason}" if reason else "The user did not approve it."
        self.called(call.item.id, None, _refusal(said))

    def _asked(self, answer: SessionItem) -> HostedMcpCall | None:
        request_id = answer.fields["approval_request_id"]
        waiting = (call for call in self._calls.values() if not call.running)
        return next((call for call in waiting if call.item.fields["approval_request_id"] == request_id), None)

    # -- the end ----------------------------------------------------------------------------------------

    def called(self, item_id: str, output: str | None, error: JsonObject | None) -> None:
        """A tool brought its output, or ``error`` of a type that the protocol knows."""
        if (call := self._calls.pop(item_id, None)) is not None:
            self._end(call, output, error)

    def _end(self, call: HostedMcpCall, output: str | None, error: JsonObject | None) -> None:
        item = call.item
        item.fields.update(status="completed" if error is None else "failed", output=output, error=error)
        kind = ev.ResponseMcpCallCompleted if error is None else ev.ResponseMcpCallFailed
        self._context.emit(kind, item_id=item.id, output_index=call.output_index)
        if call.in_conversation:
            self._context.emit(
                ev.ConversationItemDone,
                previous_item_id=self._context.items.previous_id(item.id),
                item=item.snapshot(),
            )
        self._context.emit(
            ev.ResponseOutputItemDone,
            response_id=call.response_id,
            output_index=call.output_index,
            item=item.snapshot(),
        )


def _refusal(message: str) -> JsonObject:
    return {"type": "tool_execution_error", "message": message}
