"""How the brain calls tools, and tells what they brought."""

from __future__ import annotations

import json

import pytest

from voiceapp.text.brain.matching import Match
from voiceapp.text.brain.results import calls, fresh_results, spoken_name, tell_results
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    FunctionTool,
    HistoryItem,
    ReplyRequest,
    Returned,
    Said,
)

WEATHER = FunctionTool(
    "get_weather",
    "",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}},
        "required": ["city", "days"],
    },
)


def request(*history: HistoryItem) -> ReplyRequest:
    return ReplyRequest("", history)


def test_results_that_nobody_has_told_are_those_at_the_end() -> None:
    old = (Said("user", "a"), Called("1", "f", "{}"), Returned("1", "old"), Said("assistant", "It is old."))
    assert fresh_results(request(*old)) == []
    new = (Said("user", "b"), Called("2", "f", "{}"), Called("3", "f", "{}"), Returned("2", "x"),
           Returned("3", "y"))  # fmt: skip
    assert fresh_results(request(*old, *new)) == [Returned("2", "x"), Returned("3", "y")]
    assert fresh_results(request()) == []


def test_a_call_comes_in_pieces_and_what_was_not_said_is_stood_in_for() -> None:
    match = Match(WEATHER, 5.0, {"city": "Paris"}, ("days",))
    made = list(calls([match, match], request(Called("call_0", "f", "{}"))))
    started = [delta for delta in made if isinstance(delta, CallStarted)]
    assert [(delta.index, delta.call_id, delta.name) for delta in started] == [
        (0, "call_1", "get_weather"), (1, "call_2", "get_weather")
    ]  # fmt: skip
    for index in (0, 1):
        pieces = [delta.delta for delta in made if isinstance(delta, CallArguments) and delta.index == index]
        assert len(pieces) > 1
        assert json.loads("".join(pieces)) == {"city": "Paris", "days": 2}
    assert isinstance(made[-1], CallFinished)


@pytest.mark.parametrize(
    ("name", "words"),
    [("get_weather", "get weather"), ("getWeather", "get weather"), ("temp-max", "temp max"), ("", "")],
)
def test_an_identifier_is_said_as_words(name: str, words: str) -> None:
    assert spoken_name(name) == words


@pytest.mark.parametrize(
    ("tool", "output", "sentence"),
    [
        ("get_temperature", "20", "The temperature is 20."),
        ("calculate", "12.5", "That is 12.5."),
        ("f", "[]", "There is nothing."),
        ("f", "null", "Nothing."),
        ("f", '{"answer": {"text": "Yes!"}}', "Yes!"),
        ("f", '{"link": "https://x.y"}', "The link is https://x.y."),
        ("f", '{"a": [], "b": null}', "That is done."),
        ("f", '{"error": {"message": "It is closed."}}', "I am sorry, that did not work: It is closed."),
        ("f", '{"error": {"message": "It is closed,"}}', "I am sorry, that did not work: It is closed."),
        ("f", '{"note": "by milk,", "in": "the shop..."}', "The note is by milk and the in is the shop."),
        ("f", '"by milk,"', "By milk."),
        ("f", '"\N{PARTY POPPER}"', "\N{PARTY POPPER}"),
        ("compute", "1e400", "That is about 1 times ten to the power of 400."),
    ],
)
def test_a_result_is_a_sentence_to_be_heard(tool: str, output: str, sentence: str) -> None:
    asked = request(Called("c", tool, "{}"), Returned("c", output))
    assert tell_results(fresh_results(asked), asked) == sentence


def test_results_of_several_calls_are_told_one_after_the_other() -> None:
    asked = request(Called("a", "f", "{}"), Called("b", "g", "{}"), Returned("a", "One."), Returned("b", "2"))
    assert tell_results(fresh_results(asked), asked) == "One. The g is 2."


def test_a_list_and_an_object_are_told_as_far_as_one_would_listen() -> None:
    many = json.dumps({f"field {number}": number for number in range(30)})
    told = tell_results([Returned("c", many)], request())
    assert told.endswith("and there is more.")
    assert len(told) < 300
    deep: object = "x"
    for _ in range(50):
        deep = {"inside": deep, "beside": 1}
    assert "more" in tell_results([Returned("c", json.dumps(deep))], request())
