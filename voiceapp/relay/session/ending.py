"""The ways in which a live session ends."""

from __future__ import annotations

from enum import Enum
from typing import Final

from voiceapp.errors import VoiceAppError
from voiceapp.protocol.page import CloseCode, SessionEnded


class EndReason(Enum):
    """Why a session ended.

    ``reason`` is the stable word that is kept with it, ``close_code`` closes the page's socket, and ``words``
    say it to the person at the page: the code's own where nothing more is to be said.
    """

    HUNG_UP = ("hung_up", CloseCode.ENDED)
    CONTINUED = ("continued", CloseCode.ENDED, "The conversation goes on in a new session.")
    MOVED = ("moved", CloseCode.ELSEWHERE)
    BY_ASSISTANT = ("ended_by_assistant", CloseCode.ENDED, "The assistant has hung up.")
    PAGE_GONE = ("page_gone", CloseCode.ENDED, "The page did not come back.")
    IDLE = ("idle", CloseCode.IDLE)
    CAP = ("max_duration", CloseCode.MAX_DURATION)
    UPSTREAM_REFUSED = ("upstream_refused", CloseCode.UPSTREAM_REFUSED)
    UPSTREAM_LOST = ("upstream_lost", CloseCode.UPSTREAM_LOST)
    DRAIN = ("server_stopped", CloseCode.STOPPING)
    SIGNED_OUT = ("signed_out", CloseCode.SIGNED_OUT)
    TOO_FAST = ("too_fast", CloseCode.TOO_FAST)
    FAULT = ("fault", CloseCode.FAULT)

    def __init__(self, reason: str, close_code: CloseCode, words: str = "") -> None:
        self.reason = reason
        self.close_code = close_code
        self.words = words or close_code.words

    @property
    def expected(self) -> bool:
        """Whether nothing went wrong."""
        return self is not EndReason.FAULT and not self.upstreams

    @property
    def upstreams(self) -> bool:
        """Whether the voice service is the cause."""
        return self in (EndReason.UPSTREAM_LOST, EndReason.UPSTREAM_REFUSED)

    def message(self, cause: VoiceAppError | None) -> SessionEnded:
        """Return what the page is told; ``cause`` says more of it."""
        if cause is None:
            return SessionEnded(reason=self.reason, code=self.reason, message=self.words)
        return SessionEnded(reason=self.reason, code=cause.code, message=cause.message)


REPLACED: Final = (CloseCode.ELSEWHERE, "replaced")
"""Close code and reason where another socket of the same page took the session over."""
SLOW: Final = (CloseCode.SLOW_PAGE, "slow_page")
"""Close code and reason where a page does not read."""
