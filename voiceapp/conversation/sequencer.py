"""One response at a time: queues ``response.create`` and settles the races around ``response.cancel``; pure.

The service answers a second ``response.create`` with ``conversation_already_has_active_response``, and a
cancel that arrives before ``response.created`` with ``response_cancel_not_active``. Neither reaches the
page: creates wait their turn here, and an early cancel is kept until there is something to cancel.
Responses out of the conversation (``conversation: "none"``) run beside the others and are not counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from voiceapp.protocol.events import Object

MAX_WAITING = 16
"""Creates that may wait; a page that asks for more is told so."""

MAX_COLLISIONS = 3
"""Times that one create is asked for again although no response is known to be active."""


@dataclass(slots=True)
class ResponseSequencer:
    """Which response is active, which was asked for, and which wait."""

    active: str | None = None
    asked: Object | None = None
    granted: deque[Object] = field(default_factory=lambda: deque(maxlen=8))
    waiting: deque[Object] = field(default_factory=deque)
    cancel_when_created: bool = False
    collisions: int = 0

    @property
    def idle(self) -> bool:
        """Whether no response is active, asked for or waiting."""
        return self.active is None and self.asked is None and not self.waiting

    def create(self, event: Object) -> list[Object] | None:
        """Take a ``response.create``; return what to send now, ``None`` where too many wait already."""
        if (event.get("response") or {}).get("conversation") == "none":
            return [event]
        if self.active is None and self.asked is None:
            self.asked = event
            return [event]
        if len(self.waiting) >= MAX_WAITING:
            return None
        self.waiting.append(event)
        return []

    def created(self, response: Object) -> list[Object]:
        """A response began; return a cancel where one was wanted before it began."""
        if is_out_of_band(response):
            return []
        self.active = response.get("id", "")
        if self.asked is not None:
            # The service may have begun this one by itself and refuse ours in a moment.
            self.granted.append(self.asked)
            self.asked = None
        if not self.cancel_when_created:
            return []
        self.cancel_when_created = False
        return [cancel_event(self.active)]

    def done(self, response: Object) -> list[Object]:
        """A response ended; return the next create, if one waits."""
        if is_out_of_band(response) or response.get("id") != self.active:
            return []
        self.active = None
        self.collisions = 0
        return self._next()

    def cancel(self, response_id: str | None = None) -> list[Object]:
        """Cancel a response by id, or whatever is active or asked for; return what to send now."""
        if response_id is not None and response_id != self.active:
            return [cancel_event(response_id)]
        self.waiting.clear()
        if self.active is not None:
            return [cancel_event(self.active)]
        self.cancel_when_created = self.asked is not None
        return []

    def refused(self, event_id: str, code: str | None) -> list[Object] | None:
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
        collided = code == "conversation_already_has_active_response"
        if collided and not self.cancel_when_created and self.collisions < MAX_COLLISIONS:
            self.collisions += 1
            self.waiting.appendleft(event)
        self.cancel_when_created = False
        return self._next()

    def reset(self) -> None:
        """Forget everything of a connection that is gone."""
        self.active = self.asked = None
        self.granted.clear()
        self.waiting.clear()
        self.cancel_when_created = False
        self.collisions = 0

    def _next(self) -> list[Object]:
        if self.active is not None or self.asked is not None or not self.waiting:
            return []
        self.asked = self.waiting.popleft()
        return [self.asked]


def is_out_of_band(response: Object) -> bool:
    """Return whether a response stands outside the conversation: its ``conversation_id`` is null."""
    return "conversation_id" in response and response["conversation_id"] is None


def cancel_event(response_id: str) -> Object:
    """Return ``response.cancel`` for one response."""
    return {"type": "response.cancel", "response_id": response_id}
