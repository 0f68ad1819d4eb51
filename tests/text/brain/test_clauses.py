"""What of a request is an argument, and how many calls it asks for."""

from __future__ import annotations

import datetime as dt

import pytest

from voiceapp.text.brain.clauses import clauses, sentences, without_instructions
from voiceapp.text.brain.matching import match_tool
from voiceapp.text.brain.several import match_several
from voiceapp.text.provider import FunctionTool

TODAY = dt.date(2026, 11, 29)


def tool(name: str, description: str, **kinds: str) -> FunctionTool:
    properties = {parameter: {"type": kind} for parameter, kind in kinds.items()}
    schema = {"type": "object", "properties": properties, "required": list(kinds)}
    return FunctionTool(name, description, schema)


FORECAST = tool("get_weather", "The weather and its forecast in a city", city="string")
NAMED = tool("get_forecast", "The weather forecast of a city", city="string")
TIMER = tool("set_timer", "Start a timer", minutes="integer")
TOOLS = (FORECAST, TIMER)

ONE = [
    "What is the weather in Oslo?",
    "What is the weather in Oslo? Use the get_forecast tool.",
    "What is the weather in Oslo? Please use the get_forecast tool.",
    "What is the weather in Oslo? Use get_forecast tool for this.",
    "What is the weather in Oslo? Call the get_forecast function.",
    "What is the weather in Oslo? You must call the `get_forecast` function.",
    "What is the weather in Oslo? Please call the get_forecast function now.",
    "Use the get_forecast tool: what is the weather in Oslo?",
    "Use the get_forecast tool. What is the weather in Oslo?",
    "Please use the get_forecast tool to tell me the weather in Oslo.",
    "Using the get_forecast tool, tell me the weather in Oslo.",
    "Call the get_forecast function and tell me the weather in Oslo.",
    "Tell me the weather in Oslo with the get_forecast tool.",
    "Tell me the weather in Oslo via the get_forecast tool, please.",
    "Tell me the weather in Oslo by using the get_forecast function.",
    "Invoke the get_forecast tool for the weather in Oslo.",
    "Run the get_forecast tool for Oslo.",
    "Use the get_forecast tool for Oslo.",
    "What is the forecast for Oslo? Use the tool. Answer in English.",
    "What is the weather in Oslo? Answer in one sentence. Be Brief.",
    "What is the weather in Oslo? Thanks. Bye.",
    "What is the weather in Oslo? Only use the get_forecast tool, and then Stop.",
    "Hello. My name is Ada. What is the weather in Oslo?",
    "Weather in Oslo, please",
    "And the weather in Oslo?",
    "How is the weather in Oslo on Monday?",
    "How is the weather in Oslo today? Use Celsius.",
    "How is the weather in Oslo and tell me a joke?",
    "The weather in Oslo and in Oslo?",
    "Oslo weather forecast: use the get_forecast tool in Oslo.",
    "Could you please tell me what the weather is in Oslo? Use the get_forecast tool.",
    "I would like to know the weather in Oslo, please. Call get_forecast.",
    "Would you be so kind as to look up the weather in Oslo? Thank you, Robot.",
    "Oslo: what is the weather? Use the get_forecast tool.",
    "Oslo, please. What is the weather there? Use get_forecast.",
    "Ada, what is the weather in Oslo? Use the get_forecast tool.",
    "Hi Ada, what is the weather in Oslo?",
    "For Oslo, what is the weather? Use the get_forecast tool.",
    "You are Max. The user lives in Norway. What is the weather in Oslo?",
    "Ask the get_forecast tool about the weather in Oslo.",
    "Make exactly one call to the get_forecast tool: Oslo.",
    "What is the weather in Oslo? Make sure to use the get_forecast tool before you answer.",
    "What is the weather in Oslo? Do use get_forecast, and answer in French.",
    "With the get_forecast tool, find out how the weather is in Oslo, and answer with Yes or No.",
    "How is the weather in Oslo, and answer in French, and say Goodbye and Thanks.",
    "What is the weather in Oslo? Use the tool called get_forecast.",
    "What is the weather in Oslo? Use GET_FORECAST.",
    "Please use get_forecast with city Oslo.",
    'Call get_forecast with {"city": "Oslo"}.',
    "What will the weather be in Oslo on 3 May 2027? Use the get_forecast tool.",
    "What is the weather in November in Oslo?",
    "What is the weather in Oslo at 5 p.m. on Monday, November 30?",
    "How is the weather in Oslo on Monday and Tuesday?",
    "Is it above 20 degrees Celsius in Oslo? Use the get_forecast tool.",
    "Tell me in Fahrenheit how warm the weather is in Oslo.",
    "Tell me in English how the weather in Oslo is.",
    "Will it rain or snow in Oslo? Use the get_forecast tool.",
    "Do I need an umbrella in Oslo tomorrow and should I take a coat?",
]

TWO = [
    "What is the weather in Oslo and Bergen?",
    "What is the weather in Oslo and in Bergen?",
    "What is the weather in Oslo or Bergen?",
    "What is the weather in Oslo and then in Bergen?",
    "What is the weather in Oslo and Bergen? Use the get_forecast tool.",
    "Use the get_forecast tool: what is the weather in Oslo and Bergen?",
    "Using the get_forecast tool, tell me the weather in Oslo and in Bergen.",
    "What is the weather in Oslo and also in Bergen? Be Brief.",
    "What is the weather in Oslo? What is the weather in Bergen?",
    "What is the weather in Oslo; what is the weather in Bergen?",
    "Tell me the forecast for Oslo and the forecast for Bergen.",
    "Please call the get_forecast function. The weather in Oslo and Bergen, please.",
    "What is the weather in Oslo, and in Bergen? Use the get_forecast tool.",
    "For both Oslo and Bergen, what is the weather? Use the get_forecast tool.",
    "Compare the weather in Oslo and Bergen on Monday and Tuesday. Use the get_forecast tool.",
    "Call get_forecast twice: for Oslo and Bergen.",
    "Call get_forecast for Oslo, then call get_forecast for Bergen.",
    "Is it warmer in Oslo than in Bergen? Use the get_forecast tool.",
    "What is the weather in Oslo as well as in Bergen tomorrow?",
    "Please tell me the weather in Oslo and in Bergen today, and answer with Yes or No.",
]

THREE = [
    "What is the weather in Oslo, Bergen or Rome?",
    "What is the weather in Oslo, Bergen and Rome?",
    "What is the weather in Oslo, Bergen, and Rome?",
    "What is the weather in Oslo, in Bergen and in Rome?",
    "What is the weather in Oslo, Bergen or Rome? Use the get_forecast tool.",
    "Use the get_forecast tool. What is the weather in Oslo, Bergen and Rome?",
]

NONE = [
    "Use the get_forecast tool.",
    "What is the weather?",
    "What is the weather? Use the get_forecast tool.",
    "Please call the get_forecast function now.",
    "What is the weather like today?",
]


def calls(text: str, tools: tuple[FunctionTool, ...] = TOOLS) -> list[dict[str, object]]:
    """Return the arguments of the calls that are made, as the brain makes them where it must call."""
    several = match_several(text, tools, TODAY, forced=len(tools) == 1)
    one = match_tool(text, tools, TODAY)
    found = several or ([one] if one is not None else [])
    return [match.arguments for match in found]


@pytest.mark.parametrize("text", ONE)
@pytest.mark.parametrize("asked", [FORECAST, NAMED], ids=["another name", "its name"])
def test_one_value_is_one_call(text: str, asked: FunctionTool) -> None:
    assert calls(text, (asked,)) == [{"city": "Oslo"}]


@pytest.mark.parametrize("text", TWO)
@pytest.mark.parametrize("asked", [FORECAST, NAMED], ids=["another name", "its name"])
def test_two_values_are_two_calls(text: str, asked: FunctionTool) -> None:
    assert calls(text, (asked,)) == [{"city": "Oslo"}, {"city": "Bergen"}]


@pytest.mark.parametrize("text", THREE)
def test_a_list_of_values_is_a_call_for_each(text: str) -> None:
    assert calls(text, (FORECAST,)) == [{"city": "Oslo"}, {"city": "Bergen"}, {"city": "Rome"}]


@pytest.mark.parametrize("text", NONE)
def test_what_is_said_about_a_tool_is_no_value(text: str) -> None:
    one = match_tool(text, (FORECAST,), TODAY)
    assert not match_several(text, (FORECAST,), TODAY)
    assert one is not None
    assert one.arguments.get("city") not in ("Use", "Call", "Please", "The")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Set a timer for 5 minutes and tell me the weather in Oslo.", [{"minutes": 5}, {"city": "Oslo"}]),
        ("What is the weather in Oslo and set a timer for ten minutes.", [{"city": "Oslo"}, {"minutes": 10}]),
        ("Weather in Oslo. Then set a timer for 5 minutes.", [{"city": "Oslo"}, {"minutes": 5}]),
        ("Set a timer for one hour and ten minutes.", [{"minutes": 70}]),
        ("What is the weather in Paris, France?", [{"city": "Paris"}]),
        ("Set a timer for an hour and a half. Use set_timer.", [{"minutes": 90}]),
        ("Set a timer for two hours, please. Call set_timer.", [{"minutes": 120}]),
        ("Set timers for 5 minutes and 10 minutes.", [{"minutes": 5}, {"minutes": 10}]),
        (
            "Set a timer for one hour and ten minutes and tell me the weather in Oslo.",
            [{"minutes": 70}, {"city": "Oslo"}],
        ),
        (
            "Could you set a timer for 15 minutes, and then tell me the weather in Oslo? Thank you.",
            [{"minutes": 15}, {"city": "Oslo"}],
        ),
        ("Set a timer of 5 minutes for 2 dogs and 10 cats.", [{"minutes": 5}]),
        (
            "First call get_weather for Oslo. Then call set_timer with 5 minutes.",
            [{"city": "Oslo"}, {"minutes": 5}],
        ),
        ("Is the weather in Rio de Janeiro warmer than 20 degrees?", [{"city": "Rio de Janeiro"}]),
        (
            "What is the weather in New York and San Francisco?",
            [{"city": "New York"}, {"city": "San Francisco"}],
        ),
    ],
)
def test_numbers_units_and_names_of_several_words(text: str, made: list[dict[str, object]]) -> None:
    assert calls(text) == made


def test_sentences_and_clauses() -> None:
    assert sentences("Hello. Use the x tool. What?") == ["Hello.", "What?"]
    assert clauses("in Oslo, Bergen or Rome") == ["in Oslo", "Bergen", "Rome"]
    assert clauses("in Paris, France") == ["in Paris, France"]
    assert without_instructions("Use the x tool") == "Use the x tool"
