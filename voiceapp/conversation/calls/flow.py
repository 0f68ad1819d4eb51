"""All calls of tools in one conversation: functions run here, MCP tools run by the service. Pure.

Whoever runs a call, it is put to the user first where that is wanted, it is answered exactly once, and one
response follows when all are answered, up to the rounds that a turn may have.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from voiceapp.assistants.assistant import DEFAULT_TOOL_ROUNDS
from voiceapp.assistants.mcp_servers import McpServer, scrub
from voiceapp.conversation.actions import (
    Action,
    CallTool,
    PreviewCall,
    Save,
    SendBrowser,
    SendUpstream,
    notice,
)
from voiceapp.conversation.calls.approvals import Approval, Approvals
from voiceapp.conversation.calls.functions import FunctionCalls, PendingCall
from voiceapp.conversation.calls.mcp import McpCalls, McpEvent
from voiceapp.conversation.calls.rounds import Rounds
from voiceapp.conversation.calls.shown import CallEvents
from voiceapp.conversation.items import Items
from voiceapp.conversation.lifecycle import Lifecycle
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.protocol import events
from voiceapp.protocol.page import CallPreview, Outcome
from voiceapp.tools.functions import AskFirst
from voiceapp.types import JsonObject

MAX_OUTPUTS = 64
"""Outputs that the service may still refuse; it answers within a few."""

_REASONS = {
    Outcome.DENIED: "The user did not allow this call.",
    Outcome.TIMED_OUT: "The user did not answer whether this call is allowed.",
}


class CallFlow:
    """See the module.

    ``ask_first`` has the functions that run only once the user allows it.
    ``responses`` are those that called something: asked for again, they would call it twice.
    """

    def __init__(
        self,
        own: OwnEvents,
        lifecycle: Lifecycle,
        items: Items,
        servers: tuple[McpServer, ...],
        approval_ms: float,
        ask_first: Mapping[str, AskFirst] | None = None,
        most_rounds: int = DEFAULT_TOOL_ROUNDS,
    ) -> None:
        self.rounds = Rounds(most_rounds)
        self.functions = FunctionCalls()
        self.shown = CallEvents()
        self.mcp = McpCalls(servers, self.shown)
        self.approvals = Approvals(approval_ms)
        self._own = own
        self._lifecycle = lifecycle
        self._items = items
        self._outputs: dict[str, tuple[PendingCall, str]] = {}
        self._servers = servers
        self.ask_first = dict(ask_first or {})
        self.responses: set[str] = set()
        self._kept: list[tuple[str, str, str]] = []

    @property
    def pending(self) -> bool:
        """Whether a call is not answered, or a question not settled."""
        return bool(self.functions.pending or self.approvals.pending or any(self.mcp.open()))

    # -- from the service ---------------------------------------------------------------------------

    def arguments_delta(self, event: events.ResponseFunctionCallArgumentsDelta, name: str) -> list[Action]:
        """Take more of a function's arguments."""
        begun = self.shown.call_started(event.call_id, event.item_id, event.output_index, name)
        return [*begun, *self.shown.arguments_delta(event.call_id, event.delta)]

    def call_made(self, call: PendingCall, index: int, *, anew: bool = False) -> list[Action]:
        """Take a function's call whose arguments are complete; ``index`` is its place in the response.

        ``anew`` is as in ``FunctionCalls.call_made``.
        """
        due = self.functions.call_made(call, anew=anew)
        if due is None:
            return []
        self.responses.add(call.response_id)
        self.rounds.called()
        actions: list[Action] = [
            *self.shown.call_started(call.call_id, call.item_id, index, call.name),
            *self.shown.arguments_done(call.call_id, call.arguments),
        ]
        # What is no JSON object never reaches the function, so there is nothing to ask.
        if call.name not in self.ask_first or not _is_object(call.arguments):
            return [*actions, due]
        if self.ask_first[call.name].previews:
            return [*actions, PreviewCall(call.call_id, call.name, call.arguments)]
        return [*actions, *self._ask_about(call, call.started_ms)]

    def _ask_about(self, call: PendingCall, now: float, preview: CallPreview | None = None) -> list[Action]:
        label, name, _ = self.ask_first[call.name]
        request_id, due_ms = f"approval_{call.call_id}", now + self.approvals.timeout_ms
        approval = Approval(request_id, name, call.arguments, label, call.call_id, due_ms, True, preview)
        return self._ask(approval, now)

    def previewed(
        self, call_id: str, preview: CallPreview | None, now: float, *, harmless: bool = False
    ) -> list[Action]:
        """Take what a call would do, and ask the user; without a ``preview``, about its arguments.

        A ``harmless`` call would change nothing, and runs unasked.
        """
        call = self.functions.pending.get(call_id)
        if call is None or self.approvals.known(f"approval_{call_id}"):
            return []
        if harmless:
            return [CallTool(call.call_id, call.name, call.arguments)]
        return self._ask_about(call, now, preview)

    def item_seen(self, raw: JsonObject, text: str, now: float, index: int | None = None) -> list[Action]:
        """Take an item that a service told of in ``text``; return that for the page, and what follows.

        ``index`` is the item's place in its response, where the event says it.
        """
        kind = raw.get("type")
        if kind == "function_call" and index is not None:
            names = [str(raw.get(field) or "") for field in ("call_id", "id", "name")]
            return [SendBrowser(text), *self.shown.call_started(names[0], names[1], index, names[2])]
        if not isinstance(kind, str) or not kind.startswith("mcp_"):
            return [SendBrowser(text)]
        actions: list[Action] = [self.item_shown(raw, text)]
        if kind == "mcp_list_tools":
            self.mcp.list_item(raw)
        elif kind == "mcp_call":
            if str(raw.get("id")) not in self.mcp.calls:
                self.rounds.called()
            actions += self.mcp.call_item(raw, index, now)
        elif kind == "mcp_approval_request" and not self.approvals.known(str(raw.get("id"))):
            actions += self._asked(raw, now)
        return self._clean(actions)

    def item_shown(self, raw: JsonObject, text: str) -> SendBrowser:
        """Return an event with an item for the page: without secrets, and without the operator's tools."""
        listed = raw.get("type") == "mcp_list_tools" and "tools" in raw
        return SendBrowser(scrub(_without_tools(text) if listed else text, self._servers))

    def mcp_event(self, event: McpEvent, text: str, now: float) -> list[Action]:
        """Take an event of MCP."""
        if isinstance(event, events.ResponseMcpCallArgumentsDone):
            self.responses.add(event.response_id)
        return self._clean([SendBrowser(text), *self.mcp.take(event, now)])

    def _clean(self, actions: list[Action]) -> list[Action]:
        return [
            SendBrowser(scrub(action.text, self._servers)) if isinstance(action, SendBrowser) else action
            for action in actions
        ]

    def _asked(self, raw: JsonObject, now: float) -> list[Action]:
        call = self.mcp.asked_about(raw)
        approval = Approval(
            str(raw.get("id")),
            str(raw.get("name", "")),
            str(raw.get("arguments") or ""),
            str(raw.get("server_label", "")),
            call.item_id if call else "",
            now + self.approvals.timeout_ms,
        )
        return self._ask(approval, now)

    # -- approvals ----------------------------------------------------------------------------------

    def _ask(self, approval: Approval, now: float) -> list[Action]:
        fits = self.approvals.can_ask(approval.arguments)
        asked = self.approvals.ask(approval)
        if fits:
            return [asked]
        message = f"A call of {approval.name} was refused: it cannot be shown to you."
        refused = notice("approval_not_shown", message, "warning")
        return [refused, *self.settle(approval.request_id, Outcome.DENIED, now)[1:]]

    def answer(self, item: JsonObject, now: float) -> list[Action] | tuple[str, str]:
        """Take the user's ``mcp_approval_response``; return (code, message) where it is refused."""
        request_id = str(item["approval_request_id"])
        if refusal := self.approvals.refusal(request_id):
            return refusal
        outcome = Outcome.ALLOWED if item["approve"] else Outcome.DENIED
        return self.settle(request_id, outcome, now, item.get("reason") or "")

    def settle(self, request_id: str, outcome: Outcome, now: float, reason: str = "") -> list[Action]:
        """End a question as the user or the clock wants it."""
        approval = self.approvals.pending[request_id]
        actions: list[Action] = [self.approvals.settle(request_id, outcome)]
        allowed = outcome is Outcome.ALLOWED
        why = reason or _REASONS.get(outcome, "")
        if approval.ours:
            return [*actions, *self._settle_function(approval, allowed, why, now)]
        answer = {"type": "mcp_approval_response", "approval_request_id": request_id, "approve": allowed}
        # Services want an id of this kind of item.
        answer = {"id": f"mcpa_{self._own.next_id()}", **answer, **({"reason": why} if why else {})}
        actions.append(self._own.send({"type": "conversation.item.create", "item": answer}, "approval"))
        call = self.mcp.calls.get(approval.call_id)
        if call is not None and not call.status and not allowed:
            call.output = why
            actions += self.mcp.give_up(call, "denied", now, "not_approved")
        if call is not None:
            call.since_ms = now
        # An allowed call that is there already is followed once it has ended.
        self.mcp.follow_up_due |= not allowed or call is None
        return actions

    def _settle_function(self, approval: Approval, allowed: bool, why: str, now: float) -> list[Action]:
        if allowed:
            call = self.functions.pending.get(approval.call_id)
            return [] if call is None else [CallTool(call.call_id, call.name, call.arguments)]
        error = {"error": {"code": "not_approved", "message": why}}
        output = msgspec.json.encode(error).decode()
        return self.call_returned(approval.call_id, output, status="denied", now=now)

    # -- the end of calls ---------------------------------------------------------------------------

    def call_returned(self, call_id: str, output: str, *, status: str, now: float) -> list[Action]:
        """Take a function's output; a second one for the same call is dropped."""
        if self._lifecycle.unsettled:
            self._kept.append((call_id, output, status))
            return []
        call = self.functions.pending.get(call_id)
        record = self.functions.call_returned(call_id, output, status=status, now=now)
        if call is None or record is None:
            return []
        item_id = f"item_{self._own.next_id()}"
        answer = {"type": "function_call_output", "id": item_id, "call_id": call_id, "output": output}
        # Known before the service echoes it, so that it survives a connection that is lost meanwhile.
        kept = self._items.done(answer, UNSET, now)
        sent: list[Action] = []
        if call.lost:
            # A new connection was told of no call whose output was still to come.
            sent.append(self._create(_made(call), "history"))
        give = self._create(answer, "tool_output")
        self._outputs[give.fields["event_id"]] = call, output
        if len(self._outputs) > MAX_OUTPUTS:
            del self._outputs[next(iter(self._outputs))]
        return [*sent, give, *kept, Save(record), *self._show_end(call_id, output, status)]

    def _create(self, item: JsonObject, purpose: str) -> SendUpstream:
        return self._own.send({"type": "conversation.item.create", "item": item}, purpose)

    def output_refused(self, event_id: str, error: JsonObject) -> list[Action]:
        """The service refused an output: where it does not know the call, it is given both, once."""
        call, output = self._outputs.pop(event_id, (None, ""))
        if call is not None and self._items.get(call.item_id) is None:
            # The call was deleted, and nobody waits for its output.
            return []
        if call is None or error.get("code") != "invalid_tool_call_id":
            message = f"The service did not take what a tool returned: {error.get('message') or 'no reason'}"
            return [notice("tool_output_refused", message, "warning")]
        answer = {"type": "function_call_output", "call_id": call.call_id, "output": output}
        self.functions.follow_up_due = True
        return [self._create(_made(call), "history"), self._create(answer, "history")]

    def _show_end(self, call_id: str, output: str, status: str) -> list[SendBrowser]:
        if status == "completed":
            return self.shown.call_completed(call_id)
        try:
            error = msgspec.json.decode(output)["error"]
        except (msgspec.DecodeError, KeyError, TypeError):
            error = {"code": status, "message": "The call came to no end."}
        return self.shown.call_failed(call_id, error if isinstance(error, dict) else {})

    def response_began(self) -> None:
        """Forget the response that is due: what was called before is in this one's context already."""
        self.functions.follow_up_due = self.mcp.follow_up_due = False
        self.rounds.response_began()

    def take_follow_up(self) -> str:
        """Return what the one response is for that is due now, or nothing.

        ``mcp`` may collide with one that the service began by itself, and is then not asked for again.
        """
        if self.pending:
            return ""
        mcp, self.mcp.follow_up_due = self.mcp.follow_up_due, False
        return "response" if self.functions.take_follow_up() else "mcp_response" if mcp else ""

    # -- time and endings ---------------------------------------------------------------------------

    def tick(self, now: float) -> list[Action]:
        """Refuse what nobody answered in time."""
        actions = self.mcp.unexplained_by(now)
        for call in self.mcp.hanging(now, {waiting.call_id for waiting in self.approvals.pending.values()}):
            actions += self.mcp.give_up(call, "failed", now, "timeout")
            self.mcp.follow_up_due = True
        for approval in self.approvals.overdue(now):
            actions += self.settle(approval.request_id, Outcome.TIMED_OUT, now)
            message = f"Nobody answered whether {approval.name} may be used, so it was not."
            actions.append(notice("approval_timed_out", message, "warning"))
        return actions

    def connection_lost(self, now: float) -> list[Action]:
        """The connection is gone, and with it the service's calls and questions; our own go on."""
        actions: list[Action] = []
        for approval in list(self.approvals.pending.values()):
            if not approval.ours:
                actions.append(self.approvals.settle(approval.request_id, Outcome.WITHDRAWN))
                message = f"The voice service was lost while {approval.name} waited for your answer."
                actions.append(notice("approval_withdrawn", message, "warning"))
        for call in list(self.mcp.open()):
            actions += self.mcp.give_up(call, "failed", now, "upstream_lost")
        self.mcp.follow_up_due = False
        self.functions.connection_lost()
        return actions

    def connection_made(self, now: float) -> list[Action]:
        """There is a service again; tell it what functions brought meanwhile."""
        kept, self._kept = self._kept, []
        return [
            action for call_id, output, status in kept
            for action in self.call_returned(call_id, output, status=status, now=now)
        ]  # fmt: skip

    def finish(self, now: float) -> list[Action]:
        """The session ends: what is open is kept as cancelled."""
        actions = self.connection_made(now)
        for request_id in list(self.approvals.pending):
            actions.append(self.approvals.settle(request_id, Outcome.WITHDRAWN))
        for call in list(self.mcp.open()):
            actions += self.mcp.give_up(call, "cancelled", now)
        for record in self.functions.finish(now):
            actions += [Save(record), *self._show_end(record.call_id, "", "cancelled")]
        return actions


def _made(call: PendingCall) -> JsonObject:
    """Return the item of a call as a service is told of it anew."""
    made = {"type": "function_call", "id": call.item_id, "call_id": call.call_id}
    return {**made, "name": call.name, "arguments": call.arguments}


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(arguments.strip() or "{}"), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _without_tools(text: str) -> str:
    """Return a list's event without what the operator's servers say of their tools."""
    event = msgspec.json.decode(text)
    event["item"].pop("tools", None)
    return msgspec.json.encode(event).decode()
