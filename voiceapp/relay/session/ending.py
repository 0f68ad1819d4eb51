"""The ways in which a live session ends."""

from __future__ import annotations

from enum import Enum


class EndReason(Enum):
    """Why a session ended: (reason kept with it, close code of the page's socket, words for the page)."""

    HUNG_UP = ("hung_up", 4000, "The conversation has ended.")
    CONTINUED = ("continued", 4000, "The conversation goes on in a new session.")
    MOVED = ("moved", 4017, "The conversation goes on elsewhere.")
    BY_ASSISTANT = ("ended_by_assistant", 4000, "The assistant has hung up.")
    PAGE_GONE = ("page_gone", 4000, "The page did not come back.")
    IDLE = ("idle", 4008, "Nothing was said for a long time, so the conversation has ended.")
    CAP = ("max_duration", 4013, "The conversation reached its longest duration.")
    UPSTREAM_REFUSED = ("upstream_refused", 4011, "The voice service refused the connection.")
    UPSTREAM_LOST = ("upstream_lost", 4012, "The voice service was lost.")
    DRAIN = ("server_stopped", 4015, "The server is being restarted. Your conversation is kept.")
    SIGNED_OUT = ("signed_out", 4016, "You were signed out.")
    FAULT = ("fault", 1011, "Something went wrong on the server. Your conversation is kept.")

    @property
    def reason(self) -> str:
        """The stable word."""
        return self.value[0]

    @property
    def close_code(self) -> int:
        """The WebSocket close code for the page."""
        return self.value[1]

    @property
    def words(self) -> str:
        """A sentence for the person at the page."""
        return self.value[2]


REPLACED = (4017, "replaced")
"""Close code and reason where another socket of the same page took the session over."""
SLOW = (4014, "slow_page")
"""Close code and reason where a page does not read."""
