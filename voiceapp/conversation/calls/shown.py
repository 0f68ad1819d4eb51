"""Every call of a tool as the four ``response.tool_call.*`` events, for the page; pure.

A call is completed when its tool has brought something, not when its arguments are: in between it runs. What
a service says late, twice or out of order is left out, so that the contract's order holds whatever comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voiceapp.conversation.actions import SendBrowser
from voiceapp.errors import LocalProtocolError
from voiceapp.protocol.tool_calls import (
    AnyToolCallEvent,
    CallState,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallError,
    ToolCallFault,
    ToolCallOrder,
    ToolCallStarted,
)
from voiceapp.types import JsonObject

MAX_ARGUMENTS_CHARS = 100_000
"""Of one call that are shown: they go to the page several times, and no tool here takes longer ones."""


class CallEvents:
    """The calls of one conversation by ``call_id``; a call of an MCP tool has its item's id for one."""

    def __init__(self) -> None:
        # One for each call: the bound on calls is meant for one reply, and a conversation has many.
        self._orders: dict[str, ToolCallOrder] = {}
        self._started: dict[str, ToolCallStarted] = {}
        self._sizes: dict[str, int] = {}

    def call_started(self, call_id: str, item_id: str, index: int, name: str) -> list[SendBrowser]:
        """A call was begun; nothing where it was already, or cannot be named."""
        if not call_id or not item_id or call_id in self._orders:
            return []
        event = ToolCallStarted(index=max(index, 0), item_id=item_id, call_id=call_id, name=name or "tool")
        self._orders[call_id] = ToolCallOrder(LocalProtocolError)
        self._started[call_id] = event
        return self._send(event)

    def arguments_delta(self, call_id: str, delta: str) -> list[SendBrowser]:
        """More of a call's arguments came."""
        if self._state(call_id) is not CallState.STARTED:
            return []
        size = self._sizes[call_id] = self._sizes.get(call_id, 0) + len(delta)
        if size > MAX_ARGUMENTS_CHARS:
            message = f"The arguments have more than {MAX_ARGUMENTS_CHARS} characters."
            return self.call_failed(call_id, {"code": "arguments_too_long", "message": message})
        return self._next(call_id, lambda head: ToolCallDelta(**head, arguments_delta=delta))

    def arguments_done(self, call_id: str, whole: str) -> list[SendBrowser]:
        """A call's arguments are complete; what was not told of them is told now."""
        if self._state(call_id) is not CallState.STARTED:
            return []
        shown = self._orders[call_id].arguments(call_id)
        rest = whole[len(shown) :] if whole.startswith(shown) else ""
        return self.arguments_delta(call_id, rest) if rest else []

    def call_completed(self, call_id: str) -> list[SendBrowser]:
        """A call's tool has brought something."""

        def event(head: dict[str, Any]) -> AnyToolCallEvent:
            arguments = self._orders[call_id].arguments(call_id)
            return ToolCallCompleted(**head, name=self._started[call_id].name, arguments=arguments)

        return self._next(call_id, event)

    def call_failed(self, call_id: str, error: JsonObject) -> list[SendBrowser]:
        """A call came to nothing; ``error`` is whatever the tool, the service or the relay says of it."""
        kind = str(error.get("type") or "tool_error")
        code = str(error.get("code") or kind)
        message = str(error.get("message") or "The tool failed.")
        fault = ToolCallFault(type=kind, code=code, message=message)
        return self._next(call_id, lambda head: ToolCallError(**head, error=fault))

    def _state(self, call_id: str) -> CallState:
        order = self._orders.get(call_id)
        return CallState.UNKNOWN if order is None else order.state(call_id)

    def _next(self, call_id: str, make: Callable[[dict[str, Any]], AnyToolCallEvent]) -> list[SendBrowser]:
        if self._state(call_id) is not CallState.STARTED:
            return []
        begun = self._started[call_id]
        head = {"index": begun.index, "item_id": begun.item_id, "call_id": call_id}
        return self._send(make(head))

    def _send(self, event: AnyToolCallEvent) -> list[SendBrowser]:
        self._orders[event.call_id].take(event)
        return [SendBrowser(event)]
