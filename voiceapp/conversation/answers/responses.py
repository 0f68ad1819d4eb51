"""One response at a time: queues ``response.create`` and settles the races around ``response.cancel``; pure.

The service answers a second ``response.create`` with ``conversation_already_has_active_response``, and a
cancel that arrives before ``response.created`` with ``response_cancel_not_active``. Neither reaches the
page: creates wait their turn here, and an early cancel is kept until there is something to cancel.
Responses out of the conversation (``conversation: "none"``) run beside the others and are not counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from voiceapp.conversation.actions import Action, Save, SendBrowser
from voiceapp.conversation.records import ResponseRecord
from voiceapp.protocol import events
from voiceapp.protocol.page import Level
from voiceapp.types import JsonObject

MAX_WAITING = 16
"""Creates that may wait; a page that asks for more is told so."""

MAX_COLLISIONS = 3
"""Times that one create is asked for again although no response is known to be active."""


class Refused(NamedTuple):
    """What follows a refused create: what to send now, and whether nobody need hear of the refusal."""

    due: list[JsonObject]
    settled: bool


@dataclass(slots=True)
class ResponseSequencer:
    """Which response is active, which was asked for, and which wait.

    ``stopped``: the user wants nothing more of what is active or asked for.
    """

    active: str | None = None
    asked: JsonObject | None = None
    granted: deque[JsonObject] = field(default_factory=lambda: deque(maxlen=8))
    waiting: deque[JsonObject] = field(default_factory=deque)
    stopped: bool = False
    collisions: int = 0
    beside: int = 0
    """Responses out of the conversation that were asked for and have not begun."""
    ended: deque[str] = field(default_factory=lambda: deque(maxlen=16))
    """Ids of responses that ended, so that what a service says of them once more ends no other."""

    @property
    def idle(self) -> bool:
        """Whether no response is active, asked for or waiting."""
        return self.active is None and self.asked is None and not self.waiting

    @property
    def owed(self) -> bool:
        """Whether an answer is wanted that has not ended: one that was stopped is not."""
        under_way = self.active is not None or self.asked is not None
        return bool(self.waiting) or (under_way and not self.stopped)

    def create(self, event: JsonObject) -> list[JsonObject] | None:
        """Take a ``response.create``; return what to send now, ``None`` where too many wait already."""
        if (event.get("response") or {}).get("conversation") == "none":
            self.beside += 1
            return [event]
        if self.active is None and self.asked is None:
            self.asked, self.stopped = event, False
            return [event]
        if len(self.waiting) >= MAX_WAITING:
            return None
        self.waiting.append(event)
        return []

    def created(self, response: JsonObject) -> list[JsonObject]:
        """A response began; return a cancel where one was wanted before it began."""
        if self.is_beside(response):
            self.beside = max(0, self.beside - 1)
            return []
        # A stop that came before this is meant for it; one that an earlier response was sent is not.
        self.stopped &= self.active is None
        self.active = str(response.get("id") or "")
        if self.active in self.ended:
            # A service that has one id for all of its responses begins another one by it.
            self.ended.remove(self.active)
        if not self.stopped:
            self._grant()
            return []
        # Refused, ours would be asked for again; it is not wanted any more.
        self.asked = None
        return [cancel_event(self.active)]

    def done(self, response: JsonObject) -> list[JsonObject]:
        """A response ended; return the next create, if one waits.

        One response is under way at a time, so an end that cannot be told to be another's is that one's,
        also where the service has not said that it began, or by which id.
        """
        response_id = str(response.get("id") or "")
        if response_id in self.ended or (self.active is None and self.asked is None):
            return []
        if response_id != self.active and is_out_of_band(response) and (self.active or self.beside):
            return []
        self._end(response_id or self.active or "")
        self._grant()
        return self._next()

    def is_beside(self, response: JsonObject) -> bool:
        """Whether a response is one of those out of the conversation: no id of one, and one was asked for."""
        if not is_out_of_band(response):
            return False
        return self.beside > 0 or self.asked is None

    def give_up(self) -> list[JsonObject]:
        """Nothing more is expected of the response that is active or asked for; return the next create."""
        self._end(self.active or "")
        self._grant()
        return self._next()

    def _end(self, response_id: str) -> None:
        if response_id:
            self.ended.append(response_id)
        self.active = None
        # A stop is not meant for the next one.
        self.stopped = False
        self.collisions = 0

    def _grant(self) -> None:
        """Take it that ours has begun; the service may have begun this one by itself and refuse ours yet."""
        if self.asked is not None:
            self.granted.append(self.asked)
            self.asked = None

    def cancel(self, response_id: str | None = None, *, expected: bool = False) -> list[JsonObject]:
        """Cancel a response by id, or whatever is active or asked for; return what to send now.

        ``expected``: the service is about to begin one of its own accord, which is meant as well.
        """
        if response_id is not None and response_id != self.active:
            return [cancel_event(response_id)]
        self.waiting.clear()
        self.granted.clear()
        self.stopped = self.active is not None or self.asked is not None or expected
        return [cancel_event(self.active)] if self.active is not None else []

    def turn_began(self) -> None:
        """The user says something new: a stop that nothing followed is not meant for its answer."""
        self.stopped &= self.active is not None or self.asked is not None

    def refused(self, event_id: str, code: str | None) -> Refused | None:
        """The service refused our create ``event_id``.

        Returns ``None`` where the event is not the one asked for. A create that collided with a response
        which the service began by itself waits for that one's end.
        """
        known = [*self.granted, *([self.asked] if self.asked else [])]
        event = next((event for event in known if event.get("event_id") == event_id), None)
        if event is None:
            return None
        if event is self.asked:
            self.asked = None
        else:
            self.granted.remove(event)
        stopped = self.stopped and self.active is None
        collided = code == "conversation_already_has_active_response"
        if collided and not stopped and self.collisions < MAX_COLLISIONS:
            self.collisions += 1
            self.waiting.appendleft(event)
        self.stopped &= self.active is not None
        return Refused(self._next(), collided or stopped)

    def reset(self) -> None:
        """Forget everything of a connection that is gone."""
        self.active = self.asked = None
        self.granted.clear()
        self.waiting.clear()
        self.ended.clear()
        self.stopped = False
        self.collisions = self.beside = 0

    def _next(self) -> list[JsonObject]:
        if self.active is not None or self.asked is not None or not self.waiting:
            return []
        self.asked, self.stopped = self.waiting.popleft(), False
        return [self.asked]


def is_out_of_band(response: JsonObject) -> bool:
    """Return whether a response stands outside the conversation: its ``conversation_id`` is null."""
    return "conversation_id" in response and response["conversation_id"] is None


def cancel_event(response_id: str) -> JsonObject:
    """Return ``response.cancel`` for one response."""
    return {"type": "response.cancel", "response_id": response_id}


def response_record(response: JsonObject, latency_ms: int | None) -> ResponseRecord:
    """Return what is kept of a response that is over; ``latency_ms``: how long the user waited for it."""
    return ResponseRecord(
        response_id=str(response.get("id", "")),
        status=str(response.get("status", "")),
        status_details=response.get("status_details"),
        usage=response.get("usage"),
        metadata=response.get("metadata"),
        latency_ms=latency_ms,
    )


def lost_response(
    response_id: str, event_id: str, latency_ms: int | None, code: str = "upstream_lost"
) -> list[Action]:
    """Return the end of a response whose own will not come: the connection is lost, or it is given up."""
    details = {"type": "failed", "error": {"type": "server_error", "code": code}}
    fields = {"id": response_id, "object": "realtime.response", "status": "failed", "output": []}
    response = {**fields, "status_details": details}
    done = events.ResponseDone(event_id=event_id, response=response)
    return [SendBrowser(done), Save(response_record(response, latency_ms))]


_Sentence = tuple[str, str, Level]

_INCOMPLETE: Final[dict[str, _Sentence]] = {
    "max_output_tokens": ("response_cut_short", "The answer reached its longest length.", "info"),
    "content_filter": ("response_filtered", "The service's content filter stopped the answer.", "warning"),
}


_INTERRUPTED: Final[_Sentence] = ("response_interrupted", "You spoke, so the answer was stopped.", "info")


_STOPPED: Final[_Sentence] = ("response_stopped", "The answer was stopped.", "info")


_BUSY = "The service is asked too much at the moment. Wait a little, then go on."


_FAILED = {
    "rate_limit_exceeded": _BUSY,
    "inference_rate_limit_exceeded": _BUSY,
    "insufficient_quota": "The service's quota is used up.",
    "content_filter": "The service's content filter refused the request.",
}


_EXPLAINED = ("text_engine_", "model_host_", "chat_not_configured", "too_many_model_hosts")
"""Beginnings of our own engine's codes, whose messages are sentences for people that say what to check."""


def response_notice(response: JsonObject) -> tuple[str, str, Level] | None:
    """Return (code, message, level) where a response did not end well."""
    details = response.get("status_details") or {}
    if response.get("status") == "incomplete":
        reason = str(details.get("reason", ""))
        return _INCOMPLETE.get(reason, ("response_incomplete", "The answer was cut short.", "warning"))
    if response.get("status") == "failed":
        error = details.get("error")
        error = error if isinstance(error, dict) else {}
        code = str(error.get("code") or error.get("type") or "unknown")
        sentence = _FAILED.get(code, f"The service could not answer ({code}). Ask again.")
        if code.startswith(_EXPLAINED) and (said := error.get("message")):
            sentence = str(said)[:300]
        return "response_failed", sentence, "error"
    if response.get("status") == "cancelled":
        by_speech = details.get("reason") == "turn_detected"
        return _INTERRUPTED if by_speech else _STOPPED
    return None
