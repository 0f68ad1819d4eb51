"""How often the model may call tools before it answers the user; pure.

A round is a response that called something, whoever ran it. A model that calls a tool in every answer would
go round for ever, at its operator's cost, and the user would hear nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from voiceapp.conversation.actions import SendBrowser, notice

SPENT: Final = (
    "tool_rounds_spent",
    "The assistant used its tools {} times without an answer, so it is asked to answer without them.",
)
EXCEEDED: Final = (
    "tool_rounds_exceeded",
    "The assistant goes on calling tools instead of answering, so this ends here. Ask in another way.",
)


@dataclass(slots=True)
class Rounds:
    """The rounds since the user last spoke or typed; ``most`` of them may be made."""

    most: int
    made: int = 0
    counted: bool = False
    """Whether the response under way was counted."""
    announced: int = -1
    """How many had been made when the page was last told of it."""

    @property
    def spent(self) -> bool:
        """Whether the next answer is to be one without tools."""
        return self.made >= self.most

    @property
    def exceeded(self) -> bool:
        """Whether the model called something although it was asked not to."""
        return self.made > self.most

    def turn_began(self) -> None:
        """The user says something new, and the count begins anew."""
        self.made, self.announced = 0, -1

    def response_began(self) -> None:
        """Another response is under way."""
        self.counted = False

    def called(self) -> None:
        """The response under way has called something."""
        self.made += not self.counted
        self.counted = True

    def notices(self) -> list[SendBrowser]:
        """Return the notice that is due, once for each of the two."""
        if not self.spent or self.announced >= self.most + self.exceeded:
            return []
        self.announced = self.most + self.exceeded
        code, sentence = EXCEEDED if self.exceeded else SPENT
        return [notice(code, sentence.format(self.most), "warning")]
