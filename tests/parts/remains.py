"""What is left in memory of what is over, where nothing but reference counts has freed it."""

from __future__ import annotations

import gc
import types
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.parts.clock import pause

SESSIONS: Final = ("voiceapp.conversation.", "voiceapp.records.recording.recorder", "voiceapp.relay.browser.",
                   "voiceapp.relay.session.", "voiceapp.relay.upstream.", "voiceapp.serving.consumer",
                   "voiceapp.serving.budget", "voiceapp.tools.http.", "voiceapp.tools.mcp.")  # fmt: skip
"""Where the classes are of which each session of the relay has objects of its own."""
PROCESS: Final = frozenset(["Disk"])
"""Classes among them of which the process has its one object."""

TURNS: Final = 200
"""How often it is looked before something counts as left: threads and sockets may still be at their end."""
PAUSE_S: Final = 0.01
STEPS: Final = 12
"""How many holders of an object are named, each one's own holder after it."""


class Remains:
    """Tells what has come since it was made, is of the product, and is still there."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self._parts = parts
        # Held, so that none of their ids is given to another object.
        self._before = {id(one): one for one in self._all()}

    def found(self) -> list[object]:
        """Return what is left."""
        return [one for one in self._all() if id(one) not in self._before]

    def _all(self) -> list[object]:
        found = [one for one in gc.get_objects() if str(type(one).__module__).startswith(self._parts)]
        return [one for one in found if type(one).__name__ not in PROCESS]

    async def none(self) -> None:
        """Return once nothing is left; raise ``AssertionError`` that says what is, and who holds it."""
        for _ in range(TURNS):
            if not self.found():
                return
            await pause(PAUSE_S)
        left = self.found()
        counted = Counter(type(one).__qualname__ for one in left)
        chains = "\n\n".join(_chain(one) for one in left[:3])
        raise AssertionError(f"{dict(counted)} are left.\n{chains}")


@contextmanager
def without_collections(*parts: str) -> Iterator[Remains]:
    """Let nothing be freed but by reference counts, and tell what is left then.

    ``parts`` are how the names of the modules begin whose classes are looked for.
    """
    gc.collect()
    gc.disable()
    try:
        yield Remains(parts)
    finally:
        gc.enable()


def _chain(left: object) -> str:
    """Return who holds an object, and who holds that, as far as can be seen."""
    ways: deque[list[object]] = deque([[left]])
    seen = {id(left), id(ways)}
    longest = [left]
    while ways:
        way = ways.popleft()
        longest = way if len(way) > len(longest) else longest
        if len(way) > STEPS:
            break
        for holder in gc.get_referrers(way[-1]):
            frame = isinstance(holder, types.FrameType) and holder.f_code.co_filename == __file__
            if id(holder) in seen or frame or holder is way or isinstance(holder, (deque, types.ModuleType)):
                continue
            seen.add(id(holder))
            ways.append([*way, holder])
    return "\n  held by ".join(_named(one) for one in longest)


def _named(one: object) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__} {repr(one)[:120]!r}"
