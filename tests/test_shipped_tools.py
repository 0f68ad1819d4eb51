"""Ordinary sentences that ask for the product's own tools, and those that only sound like it."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from voiceapp.records.seeding import TOOLS
from voiceapp.text.brain import Brain
from voiceapp.text.product import ProductGuide
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallStarted,
    HistoryItem,
    ReplyRequest,
    Returned,
    Said,
    TextDelta,
    Tool,
)
from voiceapp.tools.registry import registry

OFFERED = tuple(
    Tool(one["name"], one["description"], one["parameters"]) for one in registry.definitions(TOOLS)
)


def think(*history: HistoryItem, tools: tuple[Tool, ...] = OFFERED) -> tuple[str, list[tuple[str, Any]]]:
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
        ("Search my conversations for chess.", "search_conversations", {"words": "chess"}),
        ("Did we talk about that?", None, {}),
        ("Did we ever talk about chess?", "search_conversations", {"words": "chess"}),
        ("Goodbye, hang up.", "hang_up", {}),
        ("Please end the call.", "hang_up", {}),
        ("Let me talk to Grace.", "hand_over", {"name": "Grace"}),
        ("Can I speak with Grace, please?", "hand_over", {"name": "Grace"}),
        ("Put me through to Bob", "hand_over", {"name": "Bob"}),
        ("What time is it in Paris?", "current_time", {"place": "Paris"}),
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
    ],
)
def test_others_do_not(sentence: str) -> None:
    said, calls = think(Said("user", sentence))
    assert calls == []
    assert said


def test_what_is_missing_is_asked_for() -> None:
    said, calls = think(Said("user", "Set a timer."))
    assert (said.endswith("For how long shall I set it?"), calls) == (True, [])
    _, calls = think(Said("user", "Set a timer."), Said("assistant", said), Said("user", "Five minutes."))
    assert calls == [("set_timer", {"seconds": 300})]
    said, _ = think(Said("user", "Take a note."))
    _, calls = think(Said("user", "Take a note."), Said("assistant", said), Said("user", "Buy milk."))
    assert calls == [("take_note", {"text": "Buy milk"})]


def test_a_clients_own_tool_of_that_name_is_called_its_own_way() -> None:
    own = Tool("set_timer", "Set a timer", {"type": "object", "properties": {"minutes": {"type": "integer"}},
                                            "required": ["minutes"]})  # fmt: skip
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
