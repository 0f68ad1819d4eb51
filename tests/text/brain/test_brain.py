"""The built-in brain: what it answers, which tools it calls, and what it owns up to."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.stalls import growth
from voiceapp.text.brain.brain import Brain
from voiceapp.text.brain.guide import ProductGuide
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    FunctionTool,
    HistoryItem,
    ReplyRequest,
    Returned,
    Said,
    TextDelta,
)

NOW = dt.datetime(2026, 11, 29, 15, 7)  # a Sunday

GUIDE = ProductGuide(
    "# voiceapp\n\nTalk with an AI in your browser, with captions of both sides.\n\n"
    "```\npython3 manage.py up\n```\n\n| a | b |\n|---|---|\n| not | to be read aloud at all, ever |\n\n"
    "## Azure\n\nSet AZURE_OPENAI_ENDPOINT to talk to a [resource](https://x.y) of your own on Azure.\n"
)

WEATHER = FunctionTool(
    "get_weather",
    "Get the weather forecast for a city",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "day": {"type": "string", "format": "date"}},
        "required": ["city"],
    },
)

TIMER = FunctionTool(
    "set_timer",
    "Start a timer",
    {
        "type": "object",
        "properties": {"seconds": {"type": "integer"}, "label": {"type": "string"}},
        "required": ["seconds"],
    },
)

LIGHTS = FunctionTool(
    "switchLights",
    "Switch the lights of a room on or off",
    {
        "type": "object",
        "properties": {
            "room": {"type": "string", "enum": ["kitchen", "living_room"]},
            "on": {"type": "boolean"},
        },
        "required": ["room", "on"],
    },
)

TRAINS = FunctionTool(
    "find_trains",
    "Find trains between two stations",
    {
        "type": "object",
        "properties": {"origin": {"type": "string"}, "destination": {"type": "string"}},
        "required": ["origin", "destination"],
    },
)

TOOLS = (WEATHER, TIMER, LIGHTS, TRAINS)


def think(*history: HistoryItem | str, **request: Any) -> list[Delta]:
    items = tuple(Said("user", item) if isinstance(item, str) else item for item in history)
    wanted = ReplyRequest(request.pop("instructions", ""), items, **request)
    deltas = list(Brain(GUIDE, lambda: NOW).think(wanted))
    assert isinstance(deltas[-1], Finished)
    return deltas


def answer(*history: HistoryItem | str, **request: Any) -> str:
    return "".join(delta.text for delta in think(*history, **request) if isinstance(delta, TextDelta))


def call(text: str, **request: Any) -> tuple[str, dict[str, Any]] | None:
    deltas = think(text, tools=request.pop("tools", TOOLS), **request)
    started = [delta for delta in deltas if isinstance(delta, CallStarted)]
    if not started:
        return None
    assert len([delta for delta in deltas if isinstance(delta, CallFinished)]) == 1
    arguments = "".join(delta.delta for delta in deltas if isinstance(delta, CallArguments))
    return started[0].name, json.loads(arguments)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Hello, can you hear me clearly?", "Yes, I can hear you"),
        ("Hello!", "Good afternoon!"),
        ("What time is it?", "It is 3:07 p.m."),
        ("What time is it in Paris?", "I only know the time here. It is 3:07 p.m."),
        ("What is the time in Paris?", "I only know the time here. It is 3:07 p.m."),
        ("What is the current date?", "Today is Sunday"),
        ("What day is it today?", "Today is Sunday, November 29, 2026."),
        ("What is the date tomorrow?", "Tomorrow is Monday, November 30, 2026."),
        ("What is 12 plus 30?", "That is 42."),
        ("What is twelve times three?", "That is 36."),
        ("How much is seven divided by zero?", "Nobody can divide by zero"),
        ("Tell me a short joke about computers.", "Why did the computer"),
        ("Repeat after me: the sky is blue", "the sky is blue"),
        ("Count to six", "One, two, three, four, five. Six."),
        ("Count from three to one.", "Three, two, one."),
        ("Thank you very much, that is all I needed today.", "You are welcome."),
        (
            "How do I connect this app to Azure?",
            "Set AZURE_OPENAI_ENDPOINT to talk to a resource of your own",
        ),
        ("What is this application?", "Talk with an AI in your browser"),
        ("Who are you?", "I am the built-in brain"),
        ("What can you do?", "I can tell you the time"),
    ],
)
def test_it_answers_what_it_knows(said: str, expected: str) -> None:
    assert answer(said).startswith(expected)


TOKYO = "The user's time zone is Asia/Tokyo."


@pytest.mark.parametrize(
    ("instructions", "said", "expected"),
    [
        (TOKYO, "What time is it?", "It is 8:38 a.m."),
        (TOKYO, "What day is it?", "Today is Tuesday, December 1, 2026."),
        (TOKYO, "Hello!", "Good morning!"),
        ("", "What time is it?", "It is 11:38 p.m. UTC"),
        ("The user's time zone is Mars/Olympus.", "What time is it?", "It is 11:38 p.m. UTC"),
        ("", "What day is it?", "Today is Monday, November 30, 2026."),
    ],
)
def test_its_clock_is_that_of_the_user_where_it_was_told_which_that_is(
    instructions: str, said: str, expected: str
) -> None:
    night = dt.datetime(2026, 11, 30, 23, 38, tzinfo=dt.UTC)
    request = ReplyRequest(instructions=instructions, history=(Said("user", said),))
    deltas = Brain(GUIDE, lambda: night).think(request)
    assert "".join(one.text for one in deltas if isinstance(one, TextDelta)).startswith(expected)


def test_it_remembers_the_name_that_it_was_told() -> None:
    assert answer("What is my name?").startswith("You have not told me")
    assert (
        answer("My name is Ada.")
        == "Nice to meet you, Ada. I will remember your name for as long as we talk."
    )
    history = ("My name is Ada.", Said("assistant", "Nice to meet you."), "What is my name?")
    assert answer(*history) == "Your name is Ada."


def test_it_says_again_what_it_said() -> None:
    assert answer("Hi", Said("assistant", "The door is open."), "Can you repeat that?") == "The door is open."


def test_jokes_and_stories_differ_the_second_time() -> None:
    first = answer("Tell me a joke")
    assert answer("Tell me a joke", Said("assistant", first), "Another joke please") != first
    story = answer("Tell me a story")
    assert len(story.split()) > 80
    assert answer("Tell me a story", Said("assistant", story), "Tell me another story") != story


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("What is the capital of Australia and how many people live there?", "I know no geography"),
        ("What time does the next train to Manchester leave?", "I have no timetables"),
        ("What is the weather going to be like in Paris this weekend?", "no connection to a weather service"),
        ("Set a timer for twelve minutes.", "I cannot set timers"),
        ("And so my fellow Americans ask not", "I am a small built-in brain"),
    ],
)
def test_it_says_plainly_what_it_cannot_do(said: str, reason: str) -> None:
    reply = answer(said)
    assert "I cannot answer that" in reply
    assert reason in reply
    assert "not a language model" in reply


def test_it_does_not_explain_itself_twice() -> None:
    first = answer("Why is the sky blue?")
    assert "not a language model" in first
    again = answer("Why is the sky blue?", Said("assistant", first), "Why is grass green?")
    assert "not a language model" not in again


def test_silence_is_asked_about() -> None:
    assert answer("").startswith("I did not hear any words")
    assert answer().startswith("Good afternoon!")


def test_instructions_bind_it_in_what_it_can() -> None:
    assert "I am Nova." in answer(instructions="Your name is Nova.")
    assert "English is the only language I have" in answer(instructions="Always reply in German.")
    assert answer("Tell me a story", instructions="Be brief.").count(".") == 1
    assert answer(instructions='Greet the user with: "Welcome to the shop!"') == "Welcome to the shop!"


# -- tools ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "name", "arguments"),
    [
        ("What is the weather going to be like in Paris?", "get_weather", {"city": "Paris"}),
        (
            "What is the weather going to be like in New York this weekend?",
            "get_weather",
            {"city": "New York", "day": "2026-12-05"},
        ),
        ("Will the weather be good in Rome tomorrow?", "get_weather", {"city": "Rome", "day": "2026-11-30"}),
        ("Set a timer for 12 minutes and remind me.", "set_timer", {"seconds": 720}),
        ("Start a timer for ninety seconds.", "set_timer", {"seconds": 90}),
        ("Turn off the lights in the living room.", "switchLights", {"room": "living_room", "on": False}),
        ("Switch the kitchen lights on please.", "switchLights", {"room": "kitchen", "on": True}),
        (
            "Find trains from London to Manchester.",
            "find_trains",
            {"origin": "London", "destination": "Manchester"},
        ),
    ],
)
def test_it_calls_the_tool_that_is_meant(said: str, name: str, arguments: dict[str, Any]) -> None:
    assert call(said) == (name, arguments)


def test_it_calls_none_where_none_is_meant_or_allowed() -> None:
    assert call("Tell me a joke") is None
    assert call("What is the weather in Paris?", tool_choice="none") is None
    assert call("What is the weather in Paris?", tools=(TIMER,)) is None


@pytest.mark.parametrize("said", ["What is 12.5 times 8?", "How many times did you tell me?"])
def test_times_that_multiply_or_count_ask_for_no_time(said: str) -> None:
    clock = FunctionTool("get_time", "Get the time in a city", WEATHER.parameters)
    assert call(said, tools=(clock,)) is None
    assert call("What time is it in Paris?", tools=(clock,)) == ("get_time", {"city": "Paris"})
    assert call("What are the times in Paris?", tools=(clock,)) == ("get_time", {"city": "Paris"})


def test_it_asks_for_what_is_missing_and_takes_the_answer() -> None:
    question = answer("What is the weather?", tools=TOOLS)
    assert question.endswith("What is the city?")
    deltas = think("What is the weather?", Said("assistant", question), "Paris.", tools=TOOLS)
    arguments = "".join(delta.delta for delta in deltas if isinstance(delta, CallArguments))
    assert json.loads(arguments) == {"city": "Paris"}


def test_a_required_or_named_tool_is_called_whatever_was_said() -> None:
    assert call("Hello", tool_choice="required") is not None
    assert call("Hello", tool_choice="set_timer") == ("set_timer", {"seconds": 0})


@pytest.mark.parametrize(
    ("tool", "output", "told"),
    [
        ("get_weather", '{"temperature": 20, "sky": "clear"}', "The temperature is 20 and the sky is clear."),
        ("get_weather", "It is sunny.", "It is sunny."),
        ("get_weather", "sunny", "Sunny."),
        ("get_weather", '{"data": {"result": "It rains."}}', "It rains."),
        ("get_weather", '{"error": "no such city"}', "I am sorry, that did not work: no such city."),
        ("get_weather", '{"error": {"code": "x", "message": "No."}}', "I am sorry, that did not work: No."),
        (
            "delete_note",
            '{"error": {"code": "not_approved", "message": "The user did not allow this call."}}',
            "I did not do that, as you did not allow it.",
        ),
        ("get_temperature", "-3.5", "The temperature is minus 3.5."),
        ("calculate", "100", "That is 100."),
        ("calculate", "0.3333333333333333333333333333", "That is about 0.3333."),
        ("calculate", "18446744073709551616", "That is about 1.84 times ten to the power of 19."),
        ("calculate", "-0.00000125", "That is about minus 1.25 times ten to the power of minus 6."),
        (
            "shop_get_order",
            '{"method": "GET", "path": "/orders/7", "id": 7, "status": "shipped", "gift": false, "x": null,'
            ' "link": "https://x.y/7", "items": [{"id": 1, "name": "Tea"}, {"id": 2, "name": "Milk"}]}',
            "The status is shipped, gift: no and the items are Tea and Milk.",
        ),
        ("get_version", '{"method": "GET"}', "The method is GET."),
        ("pay", '{"ok": true, "note": ""}', "That is done."),
        ("pay", '{"ok": false, "reason": "no money"}', "Ok: no and the reason is no money."),
        ("pay", "{}", "That is done."),
        ("find_shops", "[]", "There is nothing."),
        ("find_shops", "[1, 2, 3, 4, 5, 6, 7]", "1, 2, 3, 4, 5 and 2 more."),
        ("is_open", "true", "Yes."),
    ],
)
def test_it_tells_what_a_tool_brought_as_one_would_say_it(tool: str, output: str, told: str) -> None:
    assert answer("Please.", Called("c1", tool, "{}"), Returned("c1", output), tools=TOOLS) == told


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
        lambda inner: st.one_of(st.lists(inner, max_size=7), st.dictionaries(st.text(max_size=9), inner)),
        max_leaves=20,
    )
)
def test_whatever_a_tool_brings_is_told(value: Any) -> None:
    assert answer("Please.", Called("c1", "f", "{}"), Returned("c1", json.dumps(value))).strip()


JSON_TYPES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number", "minimum": 3},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"enum": ["red", "blue"]},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    ]
)


@given(
    said=st.one_of(st.text(), st.sampled_from(["twelve red days in Paris", "set blue to 4, not on"])),
    properties=st.dictionaries(
        st.sampled_from(["city", "count", "on", "date", "colour", "query"]), JSON_TYPES
    ),
)
def test_arguments_are_always_valid_for_the_tools_schema(said: str, properties: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    found = call(said, tools=(FunctionTool("f", "", schema),), tool_choice="required")
    assert found is not None
    jsonschema.validate(found[1], schema)


@given(said=st.text(), instructions=st.text(), earlier=st.lists(st.text(), max_size=3))
def test_whatever_is_said_gets_an_answer(said: str, instructions: str, earlier: list[str]) -> None:
    assert answer(*earlier, said, instructions=instructions, tools=TOOLS) is not None


@pytest.mark.parametrize("text", ["1 + {}", "A {}", "{} a", "say {}", "A{}"])
def test_a_very_long_text_takes_no_more_than_its_length(text: str) -> None:
    repeated = text.replace("{}", "") if text[-1] == " " else " "
    assert growth(lambda size: answer(text.format(repeated * size), tools=TOOLS), 25_000) < 3


@given(st.text(alphabet="0123456789 plus minus times,.-x%^and hundred", max_size=60))
def test_no_sum_breaks_the_brain(said: str) -> None:
    assert answer(f"what is {said}")
