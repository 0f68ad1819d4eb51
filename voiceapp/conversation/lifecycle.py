"""How far a conversation and its service are; pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class State(IntEnum):
    """The states of a conversation.

    The tables of what each event does in them are in ``server_events`` and ``client_events``. Numbers, since
    a table is looked up by them for every event, and Python hashes those without a call.
    """

    WAITING = 0
    """There is no connection to a service. What the page sends is kept."""
    CONFIGURING = 1
    """There is one, and ``session.updated`` is due. What the page sends is kept."""
    READY = 2
    """The service took the settings: audio and events go through."""
    ENDED = 3
    """All is settled; nothing is taken any more."""


@dataclass(slots=True)
class Lifecycle:
    """The state, shared by the parts of one conversation."""

    state: State = State.WAITING

    def enter(self, state: State) -> None:
        """Go on to another state; what has ended stays so."""
        if self.state is not State.ENDED:
            self.state = state

    @property
    def unsettled(self) -> bool:
        """Whether the service cannot take anything yet, so that it has to be kept."""
        return self.state is State.WAITING or self.state is State.CONFIGURING
