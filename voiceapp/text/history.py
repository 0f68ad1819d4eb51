"""A conversation's history in the order that services take: each call with its output; pure.

Chat completions and the Responses API both refuse a call that is not followed by its output, and an output
without its call. A conversation may well have them: its user speaks while a tool runs, an item is deleted,
an output never came.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from voiceapp.text.provider import Called, HistoryItem, Returned

NO_OUTPUT: Final = "There is no result yet."
"""What stands for an output that is not there: without one the call could not be told of."""
_MAX_ID_CHARS: Final = 40
"""Longest id of a call that OpenAI's services take."""


def paired(history: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """Return the history with one output behind each call, or behind the last of calls made in a row.

    An output comes to where its call is. A call without one gets ``NO_OUTPUT``, an output without a call is
    left out. Calls of the same id get different ones, and arguments are the JSON text of an object.
    """
    outputs = _outputs(history)
    result: list[HistoryItem] = []
    due: list[Returned] = []
    used: set[str] = set()
    for position, item in enumerate(history):
        if isinstance(item, Returned):
            continue
        if not isinstance(item, Called):
            result += [*due, item]
            due = []
            continue
        if due and not (position and isinstance(history[position - 1], Called)):
            # Its row ended with an output.
            result += due
            due = []
        call = _readable(_with_own_id(item, used))
        result.append(call)
        due.append(Returned(call.call_id, outputs.get(position, NO_OUTPUT)))
    return (*result, *due)


def _outputs(history: Sequence[HistoryItem]) -> dict[int, str]:
    """Return the output of each call that has one, by the call's position; of several the first counts.

    An output belongs to the latest call of its id before it that has none yet, or to the first behind it.
    """
    waiting: dict[str, deque[int]] = {}
    early: dict[str, str] = {}
    found: dict[int, str] = {}
    for position, item in enumerate(history):
        if isinstance(item, Called):
            if item.call_id in early:
                found[position] = early.pop(item.call_id)
            else:
                waiting.setdefault(item.call_id, deque()).append(position)
        elif isinstance(item, Returned):
            calls = waiting.get(item.call_id)
            if calls:
                found[calls.popleft()] = item.output
            elif item.call_id not in waiting:
                early.setdefault(item.call_id, item.output)
    return found


def _with_own_id(call: Called, used: set[str]) -> Called:
    """Return the call under an id that no other has."""
    number, call_id = 1, call.call_id
    while call_id in used:
        number += 1
        suffix = f"_{number}"
        call_id = f"{call.call_id[: _MAX_ID_CHARS - len(suffix)]}{suffix}"
    used.add(call_id)
    return call if call_id == call.call_id else replace(call, call_id=call_id)


def _readable(call: Called) -> Called:
    """Return the call with arguments that services can read: some parse those of earlier calls."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return replace(call, arguments=json.dumps({"arguments": call.arguments}))
    return call if call.arguments else replace(call, arguments="{}")
