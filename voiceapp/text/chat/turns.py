"""Chat messages in the order that the strictest services take; pure.

OpenAI's own services take roles in any order. Templates of open models want one system message at the
beginning, then user and assistant in turns, and some of them words of the assistant behind a tool's output.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from voiceapp.types import JsonObject

NOTHING_SAID: Final = "…"
"""What stands for the turn of somebody who said nothing."""
_SYSTEM: Final = ("system", "developer")


def joined(messages: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the messages with one system message first, and neighbours of the same role made one."""
    given = list(messages)
    system = [message for message in given if message.get("role") in _SYSTEM]
    result: list[JsonObject] = []
    for message in [*system, *(message for message in given if message.get("role") not in _SYSTEM)]:
        if result and _may_join(result[-1], message):
            before = result[-1]
            result[-1] = {**before, "content": _both(before.get("content"), message.get("content"))}
        else:
            result.append(message)
    return result


def in_turns(messages: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the messages in turns, the user's first and the user's or a tool's last."""
    result: list[JsonObject] = []
    for message in joined(messages):
        before = str(result[-1].get("role")) if result else "system"
        role = message.get("role")
        if role == "assistant" and before in (*_SYSTEM, "assistant"):
            result.append({"role": "user", "content": NOTHING_SAID})
        elif role == "user" and before == "tool":
            result.append({"role": "assistant", "content": NOTHING_SAID})
        elif role == "assistant" and before == "tool" and message.get("tool_calls"):
            result += [
                {"role": "assistant", "content": NOTHING_SAID},
                {"role": "user", "content": NOTHING_SAID},
            ]
        result.append(message)
    if not result or result[-1].get("role") in (*_SYSTEM, "assistant"):
        result.append({"role": "user", "content": NOTHING_SAID})
    return result


def _may_join(before: JsonObject, message: JsonObject) -> bool:
    if before.get("role") in _SYSTEM:
        return message.get("role") in _SYSTEM
    if before.get("role") != message.get("role") or message.get("role") not in ("user", "assistant"):
        return False
    return not (before.get("tool_calls") or message.get("tool_calls"))


def _both(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return "\n\n".join(text for text in (first, second) if text)
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
