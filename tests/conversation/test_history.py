"""What a new connection is given of the conversation."""

from __future__ import annotations

from tests.parts.relay_talk import conversation, tell, upstream


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
