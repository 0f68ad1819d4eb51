"""What a conversation tells the service about itself, and how it reads the service's objects; pure."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from voiceapp.conversation.items import ConversationItem
from voiceapp.conversation.records import in_order
from voiceapp.tools.functions import name_like
from voiceapp.types import JsonObject

HISTORY_CHARS = 60_000
"""Text of earlier turns that a new connection is given: about half of the smallest model's context."""


def history(items: list[ConversationItem]) -> list[JsonObject]:
    """Return the client events that rebuild a conversation on a new connection.

    Answers come back as text, as the service accepts no assistant audio; only what was heard of them
    counts. A call's output follows it at once, wherever it came; a call without its output is left out, since
    services refuse half of the pair. A call that the service made of an MCP tool comes back as a function's,
    which every service takes. The newest turns win where not all fit.
    """
    groups: list[list[ConversationItem]] = []
    items = [part for item in in_order(items) for part in _as_function(item)]
    outputs: dict[str, ConversationItem] = {}
    for item in items:
        if item.type == "function_call_output":
            outputs.setdefault(item.call_id, item)
    for item in items:
        if item.type == "function_call":
            # Of two calls with one id the service would refuse the second.
            output = outputs.pop(item.call_id, None)
            groups += [[item, output]] if output is not None else []
        elif item.type != "function_call_output":
            groups.append([item])
    creates: list[JsonObject] = []
    room = HISTORY_CHARS
    for together in reversed(groups):
        rebuilt = [(item.item_id, fields) for item in together if (fields := _rebuild(item)) is not None]
        if not rebuilt:
            continue
        room -= sum(len(item.generated_text) + len(item.arguments) for item in together)
        if room < 0:
            break
        creates += [
            {"type": "conversation.item.create", "item": {"id": item_id, **fields}}
            for item_id, fields in reversed(rebuilt)
        ]
    creates.reverse()
    return creates


def looks(item: JsonObject) -> tuple[str, ...]:
    """Return what an item is told by where a service gives it an id of its own: kind, side and words."""
    kind = str(item.get("type") or "message")
    if kind != "message":
        words = str(item.get("arguments") if kind == "function_call" else item.get("output"))
        return kind, str(item.get("call_id")), words
    parts = item.get("content")
    texts = [part.get("text") or "" for part in parts or [] if isinstance(part, dict)]
    return kind, str(item.get("role")), "".join(map(str, texts))


def _as_function(item: ConversationItem) -> list[ConversationItem]:
    """Return an item; for an MCP call that has ended, a function's call and its output."""
    if item.type != "mcp_call":
        return [item]
    output, error = item.raw.get("output"), item.raw.get("error")
    if output is None and not error:
        return []
    said = str(output) if output is not None else msgspec.json.encode({"error": error}).decode()
    # Services take ids of 32 characters at most.
    call_id = item.item_id[-32:]
    call = replace(item, type="function_call", call_id=call_id, name=name_like(item.name))
    output_id = f"out_{item.item_id[-28:]}"
    returned = ConversationItem(
        item_id=output_id, type="function_call_output", call_id=call_id, generated_text=said
    )
    return [call, returned]


def _rebuild(item: ConversationItem) -> JsonObject | None:
    if item.type == "message" and item.role in ("user", "assistant", "system"):
        text = item.generated_text if item.heard_text is None else item.heard_text
        if not text.strip():
            return None
        kind = "output_text" if item.role == "assistant" else "input_text"
        return {"type": "message", "role": item.role, "content": [{"type": kind, "text": text}]}
    if item.type == "function_call":
        return {
            "type": "function_call",
            "call_id": item.call_id,
            "name": item.name,
            "arguments": item.arguments,
        }
    if item.type == "function_call_output":
        return {"type": "function_call_output", "call_id": item.call_id, "output": item.generated_text}
    return None
