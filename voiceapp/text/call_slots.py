"""Telling the calls of a chat stream apart, whatever a service leaves out; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CallSlots:
    """Gives each call of a stream a number of its own; ``ids`` has its id, one of ours where it has none.

    Fragments name their call by its index, or are told apart by their place. Some local servers number every
    call 0; a new id with a name then is a new call.
    """

    def __init__(self) -> None:
        self.ids: dict[int, str] = {}
        self._current: dict[int, int] = {}

    def of(self, fragment: Mapping[str, Any], position: int) -> int:
        """Return the number of the call that a fragment is of."""
        index = fragment.get("index")
        index = position if index is None else index
        name, call_id = (fragment.get("function") or {}).get("name"), fragment.get("id")
        number = self._current.get(index)
        if number is None or (name and call_id and call_id != self.ids[number]):
            number = index if index not in self.ids else max(self.ids) + 1
            self._current[index], self.ids[number] = number, call_id or f"call_{number}"
        return number
