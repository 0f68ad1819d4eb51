"""What services demand of the whole conversation that they are sent, after their published rules.

Each function raises ``AssertionError`` with what the service would refuse.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any


def check_chat(messages: Sequence[dict[str, Any]]) -> None:
    """Chat completions: an assistant's calls are followed by one ``tool`` message for each, and by none else.

    Ids stand once, arguments are JSON objects, and ``system`` says something.
    """
    open_ids: list[str] = []
    seen: set[str] = set()
    for message in messages:
        role = message["role"]
        assert role in ("system", "user", "assistant", "tool"), role
        if role == "tool":
            assert message["tool_call_id"] in open_ids, "an output that no call before it waits for"
            open_ids.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert not open_ids, f"{open_ids} did not have response messages"
        calls = message.get("tool_calls")
        if calls is None:
            assert isinstance(message["content"], str)
            continue
        assert role == "assistant"
        assert calls
        for call in calls:
            assert call["id"] not in seen, "an id that stands twice"
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert call["function"]["name"]
            seen.add(call["id"])
            open_ids.append(call["id"])
    assert not open_ids, f"{open_ids} did not have response messages"


def check_turns(messages: Sequence[dict[str, Any]]) -> None:
    """Templates of open models: one ``system`` first, then user and assistant in turns, the user first.

    Outputs follow their calls, an assistant's words follow outputs, and the last word is not the assistant's.
    """
    check_chat(messages)
    rest = list(messages)
    if rest and rest[0]["role"] == "system":
        rest = rest[1:]
    before = "start"
    allowed = {
        "start": {"user"},
        "user": {"assistant"},
        "assistant": {"user"},
        "calls": {"tool"},
        "tool": {"tool", "assistant"},
    }
    for message in rest:
        assert message["role"] in allowed[before], f"{message['role']} after {before}"
        before = "calls" if message.get("tool_calls") else message["role"]
    assert before in ("user", "tool"), f"the last message is of {before}"


def check_responses(items: Sequence[dict[str, Any]]) -> None:
    """The Responses API: each ``function_call`` has one output, which follows the calls made in a row."""
    open_ids: list[str] = []
    seen: set[str] = set()
    before = ""
    for item in items:
        kind = item["type"]
        if kind == "function_call_output":
            assert item["call_id"] in open_ids, "no tool call found for function call output"
            open_ids.remove(item["call_id"])
        elif kind == "function_call":
            assert not open_ids or before == "function_call", "no tool output found for function call"
            assert item["call_id"] not in seen
            assert isinstance(json.loads(item["arguments"]), dict)
            seen.add(item["call_id"])
            open_ids.append(item["call_id"])
        else:
            assert not open_ids, "no tool output found for function call"
            part = item["content"][0]
            assert part["type"] == ("output_text" if item["role"] == "assistant" else "input_text")
        before = kind
    assert not open_ids, "no tool output found for function call"


def check_realtime(items: Sequence[dict[str, Any]]) -> None:
    """A Realtime conversation that is told anew: each call and at once its output, ids that stand once."""
    assert len({item["id"] for item in items}) == len(items)
    calls = [item for item in items if item["type"] == "function_call"]
    assert len({call["call_id"] for call in calls}) == len(calls)
    for item, following in zip_longest(items, items[1:]):
        match item["type"]:
            case "function_call":
                assert following is not None
                assert (following["type"], following["call_id"]) == ("function_call_output", item["call_id"])
            case "message":
                kind = "output_text" if item["role"] == "assistant" else "input_text"
                assert [part["type"] for part in item["content"]] == [kind]
                assert item["content"][0]["text"].strip()
    outputs = [item for item in items if item["type"] == "function_call_output"]
    assert len(outputs) == len(calls)
