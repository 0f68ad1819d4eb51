"""Types that every layer names: JSON objects, the three of ASGI, and the place of a part of the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

_T = TypeVar("_T")

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, decoded."""

Scope: TypeAlias = dict[str, Any]
"""What an ASGI server says of a connection (ASGI, "Connection Scope")."""

Receive: TypeAlias = Callable[[], Awaitable[JsonObject]]
Send: TypeAlias = Callable[[JsonObject], Awaitable[None]]


class Part(Generic[_T]):
    """The place where a layer finds the running process's one object of a kind; calling it returns that.

    ``voiceapp.process`` makes the objects, and alone fills the places. Consumers, views and the admin are
    called by Channels and Django, which hand them nothing of ours: they, and what they call, ask here.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._part: _T | None = None

    def __call__(self) -> _T:
        """Return it. Raises ``RuntimeError`` where no process runs."""
        if self._part is None:
            raise RuntimeError(f"There is no {self._name}: no voiceapp.process.Process runs.")
        return self._part

    def get(self) -> _T | None:
        """Return it, or ``None`` where no process runs."""
        return self._part

    @contextmanager
    def use(self, part: _T) -> Iterator[_T]:
        """Let ``part`` be the one for as long as the context lasts."""
        before, self._part = self._part, part
        try:
            yield part
        finally:
            self._part = before
