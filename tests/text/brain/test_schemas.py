"""Schemas and numbers that would break the brain, or hold up whoever reads them."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parts.examples import examples
from tests.parts.stalls import growth, longest_hold, turns_during
from tests.parts.waits import PATIENCE_S
from voiceapp.text import structured
from voiceapp.text.brain.brain import Brain
from voiceapp.text.brain.guide import ProductGuide
from voiceapp.text.brain.schemas import fits, placeholder
from voiceapp.text.chat.result import Collector
from voiceapp.text.provider import Called, Delta, FunctionTool, ReplyRequest, Returned, Said
from voiceapp.tools.registry import registry

NOW = dt.datetime(2026, 3, 2, 10, 0)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)

KEYWORDS = ["type", "properties", "required", "enum", "const", "default", "items", "minItems", "minLength",
            "maxLength", "minimum", "maximum", "exclusiveMinimum", "pattern", "format"]  # fmt: skip

ANY_SCHEMA = st.recursive(
    st.dictionaries(st.sampled_from(KEYWORDS), ANY_JSON, max_size=4),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array", "string", "integer", ["null", "number"], 5])},
        optional={
            "properties": st.dictionaries(st.sampled_from(["city", "count", "a"]), inner, max_size=3),
            "required": st.lists(st.sampled_from(["city", "count", "a", 5]), max_size=3),
            "items": inner,
        },
    ),
    max_leaves=6,
)


def brain() -> Brain:
    return Brain(ProductGuide.load(), lambda: NOW)


def asked(text: str, *tools: FunctionTool, choice: str = "required") -> ReplyRequest:
    return ReplyRequest("", (Said("user", text),), tools, choice)


async def reply(request: ReplyRequest) -> list[Delta]:
    return [delta async for delta in brain().reply(request)]


# -- tools' schemas -------------------------------------------------------------------------------------


@settings(max_examples=examples(150), deadline=None)
@given(schema=ANY_SCHEMA, several=st.booleans(), choice=st.sampled_from(["auto", "required"]))
def test_no_schema_of_a_tool_breaks_the_brain(schema: dict[str, Any], several: bool, choice: str) -> None:
    tools = (FunctionTool("get_weather", "Weather of a city", schema), FunctionTool("set_timer", "", schema))
    text = "The weather in Paris and in Rome, and set a timer for 99 minutes"
    request = ReplyRequest("", (Said("user", text),), tools, choice, several_calls=several)
    assert list(brain().think(request))


def test_what_stands_in_for_unsaid_values_is_bounded() -> None:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(8):
        nested = {"type": "array", "items": nested, "minItems": 100_000_000_000}
    schema = {
        "type": "object",
        "properties": {"a": nested, "b": {"type": "string", "minLength": 10**12}},
        "required": ["a", "b", *(f"c{number}" for number in range(50_000))],
    }
    assert len(json.dumps(placeholder(schema))) < 200_000


def test_a_pattern_that_could_take_for_ever_is_not_tried() -> None:
    for pattern in (
        "(a+)+$",
        "(a|a)(a|a)(a|a)(a|a)$",
        "a?" * 30 + "a" * 30,
        "([a-z]+.)*x",
        "(",
        "a{1,9}{1,9}{1,9}",
    ):
        assert not fits("a" * 28 + "!", {"pattern": pattern})
    assert fits("AB12", {"pattern": r"^[A-Z]{2}\d+$"})
    assert not fits("12AB", {"pattern": r"^[A-Z]{2}\d+$"})


async def test_large_tools_and_long_texts_hold_nobody_up() -> None:
    words = " ".join(f"word{number} weather" for number in range(2_000))
    properties = {f"city{number}": {"type": "string", "enum": [f"x{number}"] * 500} for number in range(500)}
    tools = [FunctionTool(f"weather{number}", words, {"properties": properties}) for number in range(128)]
    hold = await longest_hold(reply(asked("Weather in Paris. " * 220, *tools, choice="auto")))
    assert hold < 0.25


async def test_a_long_or_deep_result_is_told_in_few_words() -> None:
    for output in (
        "a " * 2_000_000,
        "[" * 900 + "]" * 900,
        "[" * 200_000,
        json.dumps({"k" * 9: "v " * 40_000}),
    ):
        history = (Said("user", "Go."), Called("c", "look", "{}"), Returned("c", output))
        told = await reply(ReplyRequest("", history))
        assert sum(len(getattr(delta, "text", "")) for delta in told) < 9_000


async def test_a_long_answer_lets_others_have_their_turn() -> None:
    history = (Said("assistant", "a " * 900_000), Said("user", "Say that again."))
    turns = await turns_during(reply(ReplyRequest("", history)))
    assert turns > 100


def test_an_answer_in_very_many_pieces_is_put_together_in_time() -> None:
    def put_together(pieces: int) -> None:
        collector = Collector()
        call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "x" * 9}}
        for _ in range(pieces):
            collector.feed({"choices": [{"delta": {"content": "x" * 9, "tool_calls": [call]}}]})
        assert len(collector.result()["choices"][0]["message"]["content"]) == 9 * pieces

    assert growth(put_together, 20_000) < 3


# -- schemas of answers ---------------------------------------------------------------------------------


def chain(keyword: str, links: int, last: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose every link is looked at twice as often as the one before."""
    links_of = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(links)}
    return {"type": "object", "$ref": "#/$defs/a0", "$defs": {**links_of, f"a{links}": last}}


@pytest.mark.parametrize(
    "schema", [chain("allOf", 40, {"type": "object"}), chain("anyOf", 40, {"type": "array"})]
)
async def test_a_schema_that_would_take_years_is_given_up(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured, "CHECK_S", 0.2)
    value, fault = await asyncio.wait_for(structured.read("{}", schema), PATIENCE_S)
    assert value is None
    assert fault == "the schema takes too long to check"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/default"}}, "default": {"pattern": "(a+)+$"}},
        {"properties": {"a": {"$ref": "#/enum/0"}}, "enum": [{"pattern": "(a+)+$"}]},
        {
            "$ref": "#/properties",
            "properties": {"patternProperties": {"(a+)+$": {}}, "additionalProperties": {}},
        },
        {"$ref": "#/properties", "properties": {"pattern": {}, "$schema": {"type": "string"}}},
        {"$ref": "#"},
        {"$ref": "#/type"},
        {"allOf": [{}], "$ref": "#/allOf/x"},
        {"$ref": "http://127.0.0.1:9/never"},
        {"properties": {"n": {"multipleOf": 0.1}}},
        {"properties": {"many": {"uniqueItems": True}}},
    ],
)
async def test_no_reference_number_or_list_breaks_or_delays_a_check(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [{"n": number} for number in range(3_000)]
    answer = json.dumps({"a": "a" * 40 + "!", "a" * 40 + "!": 1, "n": 10**4_000, "many": many})
    # On the slowest machine it would not take so long; a check that went astray would take years.
    monkeypatch.setattr(structured, "CHECK_S", 60)
    value, fault = await structured.read(answer, {"type": "object", **schema})
    assert (value is None) == bool(fault)
    assert fault != "the schema takes too long to check"


async def test_equal_values_are_found_whatever_they_look_like() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1.0, {"x": [2]}]}, "b": {"uniqueItems": True}}}
    for answer in ('{"a": 1}', '{"a": {"x": [2.0]}}', '{"b": [1, true, "1"]}'):
        assert (await structured.read(answer, schema))[0] == json.loads(answer)
    for answer in ('{"a": true}', '{"a": 2}', '{"b": [1, 1.0]}', '{"b": [{"x": 1}, {"x": 1}]}'):
        assert (await structured.read(answer, schema))[0] is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
async def test_numbers_that_json_does_not_have_are_no_answer(number: str) -> None:
    assert await structured.read(f'{{"a": {number}}}', {"type": "object"}) == (None, "the answer is no JSON")


async def test_checking_a_large_schema_holds_nobody_up() -> None:
    properties = {f"p{n}": {"type": "string", "minLength": 1, "enum": ["a", "b"]} for n in range(1_000)}
    work = structured.check_schema({"type": "object", "properties": properties})
    assert await longest_hold(work) < 0.25


# -- services that answer nonsense ----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["9" * 400 + " plus 1", "what is " + "9" * 400, "count to " + "9" * 400])
async def test_numbers_beyond_all_bounds_are_too_large(text: str) -> None:
    told = "".join(getattr(one, "text", "") for one in await reply(ReplyRequest("", (Said("user", text),))))
    assert "too large" in told or "too long" in told or "cannot answer" in told


@pytest.mark.parametrize("amount", ["9" * 400, "1e400", "hundred " * 400, "1" + " million" * 99])
def test_a_timer_for_longer_than_time_is_set_or_asked_about(amount: str) -> None:
    names = ("set_timer", "list_timers", "cancel_timer", "take_note")
    offered = [FunctionTool(one["name"], "", one["parameters"]) for one in registry.definitions(names)]
    assert list(brain().think(asked(f"Set a timer for {amount} seconds", *offered, choice="auto")))
