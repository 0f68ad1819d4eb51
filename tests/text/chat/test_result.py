"""One answer made of the chunks."""

from __future__ import annotations

from tests.parts.chat_server import chunk
from voiceapp.text.chat.result import Collector


def test_calls_that_are_all_numbered_0_are_put_together_apart() -> None:
    collector = Collector()
    for call in (
        {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "look", "arguments": "{"}},
        {"index": 0, "id": "b", "function": {"arguments": "}"}},
    ):
        collector.feed(chunk({"index": 0, "delta": {"tool_calls": [call]}}))
    calls = collector.result()["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", "{}"), ("b", "{}")]
