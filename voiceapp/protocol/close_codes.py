"""How the server closes the page's socket; pure. ``voiceapp.protocol.page`` hands it on."""

from __future__ import annotations

from enum import IntEnum


class CloseCode(IntEnum):
    """Why the server closes the page's socket, as the WebSocket close code; ``words`` say it to people.

    After one that is ``resumable`` the session still waits for its page.
    """

    words: str
    resumable: bool

    def __new__(cls, code: int, words: str, resumable: bool = False) -> CloseCode:
        """Return the member with its words."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.words, member.resumable = words, resumable
        return member

    FAULT = 1011, "Something went wrong on the server. Your conversation is kept."
    ENDED = 4000, "The conversation has ended."
    NOT_SIGNED_IN = 4001, "Sign in first."
    FOREIGN_ORIGIN = 4003, "The page is of another site."
    NOT_FOUND = 4004, "There is no such assistant or conversation."
    IDLE = 4008, "Nothing was said for a long time, so the conversation has ended."
    TOO_MANY = 4009, "Too many conversations or checks are open."
    BAD_START = 4010, "The session cannot begin as the page asked for it."
    UPSTREAM_REFUSED = 4011, "The voice service cannot be used."
    UPSTREAM_LOST = 4012, "The voice service was lost."
    MAX_DURATION = 4013, "The conversation reached its longest duration."
    SLOW_PAGE = 4014, "The page does not read what is sent to it.", True
    STOPPING = 4015, "The server is being restarted. Your conversation is kept."
    SIGNED_OUT = 4016, "You were signed out."
    ELSEWHERE = 4017, "The conversation goes on elsewhere."
    TOO_FAST = 4019, "The page sends more than a conversation needs."
    NOT_KEPT = 4020, "Conversations cannot be kept at the moment."
