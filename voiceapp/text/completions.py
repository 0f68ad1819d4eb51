"""Chat completions, whoever makes them: the currency between the text engine and its clients.

A request is the body of ``POST …/chat/completions``, an answer a stream of ``chat.completion.chunk`` objects,
just as a chat service has them. The embedded brain, chat endpoints and model hosts all stand behind this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

Object = dict[str, Any]


class Completions(Protocol):
    """Whoever answers chat requests. ``provider`` and ``model`` name it in what clients are told."""

    @property
    def provider(self) -> str:
        """``embedded``, ``azure``, ``compatible`` or ``model-host``."""

    @property
    def model(self) -> str:
        """The model that answers where a request names none."""

    def stream(self, body: Object) -> AsyncGenerator[Object]:
        """Stream ``chat.completion.chunk`` objects; the last brings ``usage`` where the request asks for it.

        ``body["stream"]`` does not matter. Raises ``TextEngineError`` with a stable code, before the first
        chunk or between two. Closing the iterator ends the work behind it.
        """

    async def aclose(self) -> None:
        """Let go of connections."""
