"""What the engine asks of whoever thinks, and what it gets back.

A provider turns a conversation into a stream of text and tool calls. The embedded brain, chat endpoints and
model hosts stand behind this one interface.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from voiceapp.types import JsonObject

CHARACTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Said:
    """A message, as text: typed, transcribed or spoken."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that the provider made earlier; ``arguments`` is JSON text as it was sent."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool call brought."""

    call_id: str
    output: str


HistoryItem = Said | Called | Returned


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that the provider may call; ``parameters`` is a JSON Schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> dict[str, Any]:
        """The schema as services want it, who take none for a mistake."""
        return self.parameters or {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """Everything that a reply may depend on.

    ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of the one tool to call.
    ``several_calls`` lets a reply call more than one. ``max_tokens`` is ``None`` where there is no limit.
    ``spoken`` says that the reply will be read aloud.
    """

    instructions: str
    history: tuple[HistoryItem, ...]
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: str = "auto"
    several_calls: bool = True
    max_tokens: int | None = None
    spoken: bool = True


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The text so far was no words for the person; what was not given out of it yet must not be."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool call begins; calls of one reply are told apart by ``index``."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of a call's arguments, JSON text."""

    index: int
    delta: str


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call's arguments are complete."""

    index: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply's end; always last. Token counts are ``None`` where the provider does not count."""

    reason: Literal["stop", "max_output_tokens", "content_filter"] = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None


Delta = TextDelta | TakenBack | CallStarted | CallArguments | CallFinished | Finished


class TextProvider(Protocol):
    """Whoever thinks."""

    def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        """Stream a reply, ``Finished`` last; raise ``TextEngineError`` where there is none, or no end of it.

        Cancel by closing it.
        """

    async def aclose(self) -> None:
        """Let go of connections."""


def text_tokens(text: str) -> int:
    """Return about how many tokens a text is, where nobody counts them."""
    return tokens_of(len(text))


def tokens_of(characters: int) -> int:
    """Return about how many tokens so many characters are."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


class Completions(Protocol):
    """Whoever answers chat requests. ``provider`` and ``model`` name it in what clients are told."""

    @property
    def provider(self) -> str:
        """``embedded``, ``azure``, ``compatible`` or ``model-host``."""

    @property
    def model(self) -> str:
        """The model that answers where a request names none."""

    def stream(self, body: JsonObject) -> AsyncGenerator[JsonObject]:
        """Stream ``chat.completion.chunk`` objects; the last brings ``usage`` where the request asks for it.

        One of them says why the answer ends, and it has words or calls. ``chat_chunks.TAKEN_BACK`` may stand
        among them.
        ``body["stream"]`` does not matter. Raises ``TextEngineError`` with a stable code, before the first
        chunk or between two. Closing the iterator ends the work behind it.
        """

    async def aclose(self) -> None:
        """Let go of connections."""
