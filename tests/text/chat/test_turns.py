"""Chat messages in the order that the strictest services take."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts.receivers import check_turns
from voiceapp.text.chat.turns import NOTHING_SAID, in_turns, joined

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def said(*roles: str) -> list[dict[str, Any]]:
    """Return messages that say their own position; ``calls`` is an assistant's call, ``tool`` its output."""
    made: list[dict[str, Any]] = []
    for position, role in enumerate(roles):
        match role:
            case "calls":
                made.append({"role": "assistant", "content": None, "tool_calls": [CALL]})
            case "tool":
                made.append({"role": "tool", "tool_call_id": "a", "content": str(position)})
            case _:
                made.append({"role": role, "content": str(position)})
    return made


@pytest.mark.parametrize(
    ("roles", "contents"),
    [
        (("system", "user", "user"), ["0", "1\n\n2"]),
        (("user", "system", "user"), ["1", "0\n\n2"]),
        (("developer", "user", "assistant", "assistant"), ["0", "1", "2\n\n3"]),
        (("user", "calls", "tool", "user"), ["0", None, "2", "3"]),
        (("user", "assistant", "calls", "tool"), ["0", "1", None, "3"]),
        ((), []),
    ],
)
def test_neighbours_of_one_role_are_joined(roles: tuple[str, ...], contents: list[str | None]) -> None:
    assert [message["content"] for message in joined(said(*roles))] == contents


@pytest.mark.parametrize(
    ("roles", "filled"),
    [
        (("system", "user", "assistant", "user"), 0),
        (("assistant", "user"), 1),
        (("user", "assistant"), 1),
        (("user", "calls", "tool", "user"), 1),
        (("user", "calls", "tool", "calls"), 2),
        (("user", "assistant", "calls", "tool"), 1),
        (("system",), 1),
        ((), 1),
    ],
)
def test_a_turn_that_is_missing_is_filled(roles: tuple[str, ...], filled: int) -> None:
    given = said(*roles)
    if roles[-1:] == ("calls",):
        given[-1] = {**given[-1], "tool_calls": [{**CALL, "id": "b"}]}
        given.append({"role": "tool", "tool_call_id": "b", "content": "9"})
    turns = in_turns(given)
    check_turns(turns)
    assert sum(message.get("content") == NOTHING_SAID for message in turns) == filled
    assert in_turns(turns) == turns


def test_parts_are_joined_as_parts() -> None:
    image = {"type": "image_url", "image_url": {"url": "x"}}
    [one] = joined([{"role": "user", "content": "Look."}, {"role": "user", "content": [image]}])
    assert one["content"] == [{"type": "text", "text": "Look."}, image]
