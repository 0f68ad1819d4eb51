"""Calls of tools that wait for the user's word: each is answered once, by the user or by the clock; pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from msgspec import UNSET

from voiceapp.conversation.actions import SendBrowser
from voiceapp.protocol.page import ApprovalRequested, ApprovalSettled, CallPreview, Outcome

MAX_PENDING = 32
"""Questions that may be open at once; nobody reads more, and a model can ask without end."""

MAX_SHOWN_CHARS = 16_000
"""Longest arguments that are put to the user: what cannot be shown cannot be allowed either."""

MAX_SETTLED = 256
"""Answered questions that are remembered, so that a second answer is told from one to nothing."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One question, which lapses at ``due_ms``.

    ``server_label`` is the MCP server, or the service of an HTTP tool; empty for a tool of neither.
    ``call_id`` names the call that waits; it is empty where a service asks before there is one. ``ours`` is
    whether the call is to run here, and not at the service. ``preview`` is what it would do, if that is
    known.
    """

    request_id: str
    name: str
    arguments: str
    server_label: str
    call_id: str
    due_ms: float
    ours: bool = False
    preview: CallPreview | None = None


@dataclass(slots=True)
class Approvals:
    """The questions of one conversation."""

    timeout_ms: float
    pending: dict[str, Approval] = field(default_factory=dict)
    settled: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_SETTLED))

    def known(self, request_id: str) -> bool:
        """Whether the question was asked, be it answered or not."""
        return request_id in self.pending or request_id in self.settled

    def can_ask(self, arguments: str) -> bool:
        """Whether the user can be asked about one call more, with these arguments."""
        return len(self.pending) < MAX_PENDING and len(arguments) <= MAX_SHOWN_CHARS

    def ask(self, approval: Approval) -> SendBrowser:
        """Put a question to the user."""
        self.pending[approval.request_id] = approval
        return SendBrowser(
            ApprovalRequested(
                approval_request_id=approval.request_id,
                server_label=approval.server_label,
                name=approval.name,
                arguments=approval.arguments,
                call_id=approval.call_id,
                timeout_ms=int(self.timeout_ms),
                preview=approval.preview or UNSET,
            )
        )

    def settle(self, request_id: str, outcome: Outcome) -> SendBrowser:
        """End a pending question; the page takes it away."""
        del self.pending[request_id]
        self.settled.append(request_id)
        return SendBrowser(ApprovalSettled(approval_request_id=request_id, outcome=outcome))

    def refusal(self, request_id: str) -> tuple[str, str] | None:
        """Return (code, message) where an answer answers nothing."""
        if request_id in self.pending:
            return None
        if request_id in self.settled:
            return "approval_already_settled", "This was answered already, or it is too late."
        return "approval_not_found", "Nothing waits for this answer."

    def overdue(self, now: float) -> list[Approval]:
        """Return the questions that nobody answered in time."""
        return [approval for approval in self.pending.values() if approval.due_ms <= now]
