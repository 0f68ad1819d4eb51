"""Client events that the relay sends of its own accord, so that errors about them find their way; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from voiceapp.conversation.actions import SendUpstream
from voiceapp.types import JsonObject

MAX_KEPT = 256
"""Events that an error may still name; services answer within a few."""


@dataclass(slots=True)
class OwnEvents:
    """Gives ids, and remembers what each event of ours was for."""

    ids: Iterator[str]
    purposes: dict[str, str] = field(default_factory=dict)

    def next_id(self) -> str:
        """Return an id that no event has yet."""
        return next(self.ids)

    def send(self, fields: JsonObject, purpose: str) -> SendUpstream:
        """Return an event to be sent under an id of ours."""
        return SendUpstream(self.stamp(fields, purpose))

    def stamp(self, fields: JsonObject, purpose: str) -> JsonObject:
        """Return an event with an id of ours."""
        event_id = next(self.ids)
        self.purposes[event_id] = purpose
        if len(self.purposes) > MAX_KEPT:
            del self.purposes[next(iter(self.purposes))]
        return {**fields, "event_id": event_id}

    def named(self, fields: JsonObject) -> JsonObject:
        """Return a page's ``response.create``, with an id of ours where it has none."""
        return fields if isinstance(fields.get("event_id"), str) else self.stamp(fields, "response")

    def take(self, event_id: str) -> str | None:
        """Return what an event of ours was for, once; ``None`` for the page's events."""
        return self.purposes.pop(event_id, None)

    def clear(self) -> None:
        """Forget what was sent on a connection that is gone."""
        self.purposes.clear()
