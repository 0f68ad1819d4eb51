"""How much of a sentence speaks of a tool."""

from __future__ import annotations

import pytest

from voiceapp.text.brain.scoring import ENOUGH, score_tool, stems, tool_stems
from voiceapp.text.provider import FunctionTool


def asking(*names: str) -> dict[str, object]:
    return {"properties": {name: {"type": "string"} for name in names}, "required": list(names)}


TIMER = FunctionTool("setTimer", "Start a timer", asking("seconds"))


def test_a_name_counts_more_than_a_description_and_that_more_than_a_parameter() -> None:
    named = FunctionTool("rain", "", {})
    described = FunctionTool("x", "Tell whether it will rain", {})
    asked = FunctionTool("x", "", asking("rain"))
    scores = [score_tool("Will there be rain?", tool) for tool in (named, described, asked, TIMER)]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 4
    assert scores[0] >= ENOUGH


@pytest.mark.parametrize(
    ("text", "score"),
    [("It rained five times.", 0), ("How many times is that?", 0), ("Times and time zones", 3), ("", 0)],
)
def test_times_that_count_ask_for_no_time(text: str, score: float) -> None:
    assert score_tool(text, FunctionTool("get_time", "", {})) == score


def test_the_words_of_a_tool_are_those_that_say_something() -> None:
    assert tool_stems(TIMER) == stems("timer start seconds")
    assert stems("Tell me the weather, please!") == {"weather"}
    assert stems("timers timed") == stems("timer time")
