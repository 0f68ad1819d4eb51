"""Ordinary sentences that ask for the product's own tools, and those that only sound like it."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any
from uuid import uuid4

import pytest

from tests.parts.places import ROOT
from voiceapp.records.setup.seeding import TOOLS
from voiceapp.text.brain.brain import Brain
from voiceapp.text.brain.guide import ProductGuide
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallStarted,
    FunctionTool,
    HistoryItem,
    ReplyRequest,
    Returned,
    Said,
    TextDelta,
)
from voiceapp.tools.registry import ToolContext, registry

OFFERED = tuple(
    FunctionTool(one["name"], one["description"], one["parameters"]) for one in registry.definitions(TOOLS)
)
SEEDED = tuple(tool for tool in OFFERED if tool.name in TOOLS)


def think(
    *history: HistoryItem, tools: tuple[FunctionTool, ...] = OFFERED
) -> tuple[str, list[tuple[str, Any]]]:
    """Return what the brain says, and the calls that it makes."""
    brain = Brain(ProductGuide(""), lambda: dt.datetime(2026, 11, 30, 12, 0))
    said, calls = "", []
    for delta in brain.think(ReplyRequest("", history, tools)):
        if isinstance(delta, TextDelta):
            said += delta.text
        elif isinstance(delta, CallStarted):
            calls.append([delta.name, ""])
        elif isinstance(delta, CallArguments):
            calls[-1][1] += delta.delta
    return said, [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize(
    ("sentence", "name", "arguments"),
    [
        ("Set a timer for ten seconds.", "set_timer", {"seconds": 10}),
        ("Please start a timer for 5 minutes", "set_timer", {"seconds": 300}),
        ("Set an alarm for one hour and ten minutes.", "set_timer", {"seconds": 4200}),
        ("set a timer for half an hour", "set_timer", {"seconds": 1800}),
        ("Set a two minute timer.", "set_timer", {"seconds": 120}),
        ("Remind me in a minute to call Mum.", "set_timer", {"seconds": 60, "label": "call Mum"}),
        ("How long is left on the timer?", "list_timers", {}),
        ("Which timers are running?", "list_timers", {}),
        ("Cancel the timer.", "cancel_timer", {}),
        ("Take a note: buy milk.", "take_note", {"text": "buy milk"}),
        ("Please make a note that Ada's train leaves at nine.", "take_note",
         {"text": "Ada's train leaves at nine"}),
        ("Note down the code is 4711", "take_note", {"text": "the code is 4711"}),
        ("What are my notes?", "list_notes", {}),
        ("Read me my notes about milk.", "list_notes", {"words": "milk"}),
        ("Delete the note about milk.", "delete_note", {"words": "milk"}),
        ("Delete my note about the milk.", "delete_note", {"words": "milk"}),
        ("Undo that, please.", "undo_delete_note", {}),
        ("Undo.", "undo_delete_note", {}),
        ("Please restore my notes.", "undo_delete_note", {}),
        ("Can you bring the last note back?", "undo_delete_note", {}),
        ("Do not undo that.", None, {}),
        ("How do I undo a knot?", None, {}),
        ("Search my conversations for chess.", "search_conversations", {"words": "chess"}),
        ("Did we talk about that?", None, {}),
        ("Did we ever talk about chess?", "search_conversations", {"words": "chess"}),
        ("Goodbye, hang up.", "hang_up", {}),
        ("Please end the call.", "hang_up", {}),
        ("Let me talk to Grace.", "hand_over", {"name": "Grace"}),
        ("Can I speak with Grace, please?", "hand_over", {"name": "Grace"}),
        ("Put me through to Bob", "hand_over", {"name": "Bob"}),
        ("What time is it in Paris?", "current_time", {"place": "Paris"}),
        ("Tell me the current time in New York, please.", "current_time", {"place": "New York"}),
        ("what's the time in tokyo right now", "current_time", {"place": "tokyo"}),
        ("What day is it in Sydney?", "current_time", {"place": "Sydney"}),
        ("How late is it in Berlin?", "current_time", {"place": "Berlin"}),
        ("What is 12.5 times 8?", "calculate", {"expression": "12.5 * 8"}),
        ("What is twelve times twelve?", "calculate", {"expression": "12 * 12"}),
        ("3 plus 4", "calculate", {"expression": "3 + 4"}),
        ("How much is twenty percent of 50?", "calculate", {"expression": "20 / 100 * 50"}),
        ("Please calculate (12.5 + 3) * 4.", "calculate", {"expression": "(12.5 + 3) * 4"}),
        ("What is the square root of eighty one?", "calculate", {"expression": "81 ** 0.5"}),
        ("What is half of ten?", "calculate", {"expression": "0.5 * 10"}),
        ("What is 12,345,678,901,234,567,890 + 1?", "calculate",
         {"expression": "12345678901234567890 + 1"}),
    ],
)  # fmt: skip
def test_a_sentence_calls_the_tool_that_it_asks_for(
    sentence: str, name: str | None, arguments: dict[str, Any]
) -> None:
    _, calls = think(Said("user", sentence))
    assert calls == ([(name, arguments)] if name else [])


@pytest.mark.parametrize(
    "sentence",
    [
        "How long does it take to boil an egg?",
        "Do not hang up.",
        "Let me talk to you about the weather.",
        "Tell me a joke.",
        "What is the next note of the scale?",
        "Hand on heart, is that true?",
        "Hello.",
        "Goodbye.",
        "It is over now.",
        "How many times did you tell me?",
        "I told you three times.",
        "Have a good time in Paris.",
        "What time is it?",
        "What time is it right now?",
        "What is the time in half an hour?",
        "What time does the next train to Manchester leave?",
        "I have 3 apples and 4 pears.",
        "Call 555-1234.",
        "555-1234",
        "What is 7 times?",
        "What is 5 (4)?",
    ],
)
def test_others_do_not(sentence: str) -> None:
    said, calls = think(Said("user", sentence))
    assert calls == []
    assert said


def test_the_time_that_will_be_is_not_the_time_that_is() -> None:
    assert "12:00" not in think(Said("user", "What is the time in half an hour?"))[0]


@pytest.mark.parametrize(
    "sentence",
    [
        "What time is it?",
        "What time is it right now?",
        "What's the time",
        "What is the current time, please?",
    ],
)
def test_the_time_here_is_the_brains_own(sentence: str) -> None:
    assert think(Said("user", sentence))[0].strip() == "It is 12:00 p.m."


def test_the_time_in_several_cities_is_asked_for_each() -> None:
    said = Said("user", "What time is it in Paris and in New York?")
    assert think(said)[1] == [("current_time", {"place": "Paris"}), ("current_time", {"place": "New York"})]
    for besides in ("what is the weather", "set a quick alarm", "call me back"):
        said = Said("user", f"What time is it in Paris and {besides}?")
        assert ("current_time", {"place": besides}) not in think(said)[1]


async def test_a_sum_is_worked_out_by_the_tool_as_the_brain_writes_it() -> None:
    context = ToolContext(uuid4(), 7, "call_1")
    for sentence, result in [
        ("What is twenty percent of 50?", "10"),
        ("What is the square root of 81?", "9"),
        ("What is -3 + 5?", "2"),
        ("two to the power of ten", "1024"),
    ]:
        ((name, arguments),) = think(Said("user", sentence))[1]
        assert await registry.run(name, json.dumps(arguments), context, TOOLS) == result


EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "What time is it in Paris?": ("current_time", {"place": "Paris"}),
    "What is 12.5 times 8?": ("calculate", {"expression": "12.5 * 8"}),
    "Set a timer for five minutes.": ("set_timer", {"seconds": 300}),
    "How many kilometers are five miles?": (
        "convert_units", {"amount": 5, "from_unit": "miles", "to_unit": "kilometers"}),
    "Take a note: buy milk.": ("take_note", {"text": "buy milk"}),
    "What are my notes?": ("list_notes", {}),
    "Bring back the note.": ("undo_delete_note", {}),
    "Did we ever talk about chess?": ("search_conversations", {"words": "chess"}),
    "Let me talk to Grace.": ("hand_over", {"name": "Grace"}),
    "Goodbye, hang up.": ("hang_up", {}),
}  # fmt: skip


def test_what_the_manual_says_for_instance_calls_the_tool_of_its_row() -> None:
    manual = (ROOT / "docs" / "tools.md").read_text()
    table = re.search(r"^\| Tool \| Say, for instance \|\n\|[ -|]+\n((?:\|.*\n)+)", manual, re.M)
    assert table
    said = {}
    for line in table[1].splitlines():
        tools, examples = line.strip("|").split("|")
        for sentence in re.findall(r'"([^"]+)"', examples):
            ((name, arguments),) = think(Said("user", sentence), tools=SEEDED)[1]
            assert f"`{name}`" in tools
            said[sentence] = (name, arguments)
    assert said == EXAMPLES


def test_what_is_missing_is_asked_for() -> None:
    said, calls = think(Said("user", "Set a timer."))
    assert (said.endswith("For how long shall I set it?"), calls) == (True, [])
    _, calls = think(Said("user", "Set a timer."), Said("assistant", said), Said("user", "Five minutes."))
    assert calls == [("set_timer", {"seconds": 300})]
    said, _ = think(Said("user", "Take a note."))
    _, calls = think(Said("user", "Take a note."), Said("assistant", said), Said("user", "Buy milk."))
    assert calls == [("take_note", {"text": "Buy milk"})]


def test_a_clients_own_tool_of_that_name_is_called_its_own_way() -> None:
    parameters = {"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]}
    own = FunctionTool("set_timer", "Set a timer", parameters)
    assert think(Said("user", "Set a timer for 5 minutes."), tools=(own,))[1] == [
        ("set_timer", {"minutes": 5})
    ]


def test_what_a_tool_answers_is_said_as_it_is() -> None:
    history = (Said("user", "Set a timer for ten seconds."), Called("c", "set_timer", '{"seconds":10}'),
               Returned("c", "The timer for 10 seconds is set."))  # fmt: skip
    assert think(*history)[0].strip() == "The timer for 10 seconds is set."


def test_news_of_the_application_is_told() -> None:
    news = Said("system", "The timer for 10 seconds is over. Tell the user so now.")
    assert think(Said("user", "Hello."), Said("assistant", "Hi."), news)[0].strip() == (
        "The timer for 10 seconds is over."
    )
