"""What a new connection is given of the conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.relay_talk import conversation, tell, upstream
from voiceapp.conversation.history import HISTORY_CHARS, history
from voiceapp.conversation.items import ConversationItem
from voiceapp.types import JsonObject


def test_history_fits_its_budget_and_keeps_pairs_together() -> None:
    talk = conversation()
    for n in range(200):
        role, kind = ("user", "input_text") if n % 2 == 0 else ("assistant", "output_text")
        item = {"id": f"m{n}", "type": "message", "role": role, "status": "completed"}
        item["content"] = [{"type": kind, "text": f"turn {n} " + "x" * 600}]  # type: ignore[assignment]
        tell(talk, {"type": "conversation.item.done", "item": item})
    call_item = {"id": "c", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    tell(talk, {"type": "conversation.item.done", "item": call_item})
    lonely = {"id": "c2", "type": "function_call", "call_id": "call_2", "name": "f", "arguments": "{}"}
    tell(talk, {"type": "conversation.item.done", "item": lonely})
    output = {"id": "o", "type": "function_call_output", "call_id": "call_1", "output": "42"}
    tell(talk, {"type": "conversation.item.done", "item": output})
    sent = upstream(tell(talk, {"type": "session.created", "session": {"type": "realtime"}}))
    creates = [event["item"] for event in sent if event["type"] == "conversation.item.create"]
    assert [item["id"] for item in creates[-2:]] == ["c", "o"]
    assert "c2" not in {item["id"] for item in creates}
    assert creates[-3]["content"][0]["text"].startswith("turn 199 ")
    assert sum(len(str(item)) for item in creates) < 80_000


def message(name: str, role: str, text: str, **fields: Any) -> ConversationItem:
    return ConversationItem(item_id=name, role=role, generated_text=text, **fields)


def test_each_side_says_again_what_was_heard_of_it() -> None:
    events = history(
        [
            message("s", "system", "Be brief."),
            message("u", "user", "Hi"),
            message("a", "assistant", "one two three", heard_text="one"),
            message("cut", "assistant", "never heard", heard_text=""),
            message("quiet", "user", " "),
            message("odd", "tool", "x"),
        ]
    )
    assert [event["type"] for event in events] == ["conversation.item.create"] * 3
    said = [(event["item"]["id"], event["item"]["content"][0]) for event in events]
    assert said == [
        ("s", {"type": "input_text", "text": "Be brief."}),
        ("u", {"type": "input_text", "text": "Hi"}),
        ("a", {"type": "output_text", "text": "one"}),
    ]


@pytest.mark.parametrize(
    ("ended", "output"),
    [
        ({"output": "bought"}, "bought"),
        ({"output": ""}, ""),
        ({"error": {"code": "sold_out"}}, '{"error":{"code":"sold_out"}}'),
        ({}, None),
    ],
)
def test_a_servers_call_comes_back_as_a_functions_once_it_has_ended(
    ended: JsonObject, output: str | None
) -> None:
    call = ConversationItem(item_id="mcp_1", type="mcp_call", name="buy it!", arguments="{}", raw=ended)
    items = [event["item"] for event in history([call])]
    if output is None:
        assert items == []
        return
    made, returned = items
    assert (made["type"], made["name"], made["call_id"]) == ("function_call", "buy_it_", "mcp_1")
    assert (returned["type"], returned["call_id"], returned["output"]) == (
        "function_call_output", "mcp_1", output
    )  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["call", "output"]), st.integers(0, 4)), max_size=12))
def test_half_a_pair_is_never_given(parts: list[tuple[str, int]]) -> None:
    items = [
        ConversationItem(
            item_id=f"i{at}",
            type="function_call" if kind == "call" else "function_call_output",
            call_id=f"c{number}",
            generated_text="x" * (HISTORY_CHARS // 3) if kind == "output" else "",
        )
        for at, (kind, number) in enumerate(parts)
    ]
    given_items = [event["item"] for event in history(items)]
    called = {item["call_id"] for item in given_items if item["type"] == "function_call"}
    returned = {item["call_id"] for item in given_items if item["type"] == "function_call_output"}
    assert returned <= called
