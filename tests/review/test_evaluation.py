"""Judging a session that is over."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from voiceapp.errors import TextEngineError
from voiceapp.review.evaluation import MAX_CRITERIA, MAX_CRITERIA_CHARS, judge, read_criteria
from voiceapp.review.remarks import Remark
from voiceapp.types import JsonObject

SAID = [Remark("user", "Hello"), Remark("assistant", "Hello.")]


class Judge:
    """A model that answers with these judgements, one after the other."""

    model = "judge-1"

    def __init__(self, *answers: Any, provider: str = "compatible") -> None:
        self.provider = provider
        self.asked: list[JsonObject] = []
        self._answers = list(answers)

    async def stream(self, body: JsonObject) -> AsyncGenerator[JsonObject]:
        self.asked.append(body)
        delta = {"content": json.dumps(self._answers.pop(0))}
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
        yield {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}

    async def aclose(self) -> None:
        """Nothing is open."""


def judgement(*scores: int, overall: int = 5) -> JsonObject:
    found = [{"score": score, "reason": f"It was {score}."} for score in scores]
    return {"scores": found, "overall": overall, "comment": "Fine."}


def test_criteria_are_lines_without_the_empty_ones() -> None:
    assert read_criteria(" Was it kind? \n\n\tWas it short?\n") == ["Was it kind?", "Was it short?"]
    assert len(read_criteria("\n".join(["x"] * MAX_CRITERIA))) == MAX_CRITERIA


@pytest.mark.parametrize(
    "text", ["", " \n ", "\n".join(["x"] * (MAX_CRITERIA + 1)), "x" * (MAX_CRITERIA_CHARS + 1)]
)
def test_too_few_and_too_many_criteria_are_refused(text: str) -> None:
    with pytest.raises(TextEngineError) as refused:
        read_criteria(text)
    assert refused.value.code == "invalid_criteria"


async def test_each_criterion_has_its_score_and_reason() -> None:
    model = Judge(judgement(9, 2, overall=6))
    found = await judge(SAID, ["Was it kind?", "Was it short?"], model)
    assert found.scores == [
        {"criterion": "Was it kind?", "score": 9, "reason": "It was 9."},
        {"criterion": "Was it short?", "score": 2, "reason": "It was 2."},
    ]
    assert (found.overall, found.comment, found.model) == (6, "Fine.", "judge-1")
    assert (found.tokens_in, found.tokens_out) == (10, 2)
    asked = model.asked[0]["messages"][1]["content"]
    assert "1. Was it kind?\n2. Was it short?" in asked
    assert asked.endswith("User: Hello\nAssistant: Hello.")


@pytest.mark.parametrize("wrong", [judgement(1), judgement(1, 11), judgement(1, 2, overall=-1), {}])
async def test_a_judgement_that_does_not_fit_is_asked_for_again(wrong: JsonObject) -> None:
    found = await judge(SAID, ["a", "b"], Judge(wrong, judgement(1, 2)))
    assert [score["score"] for score in found.scores] == [1, 2]
    assert found.tokens_in == 20


@pytest.mark.parametrize(
    ("provider", "said", "code"),
    [("embedded", SAID, "evaluator_unavailable"), ("compatible", [], "nothing_said")],
)
async def test_what_cannot_be_judged_is_said_before_anybody_is_asked(
    provider: str, said: list[Remark], code: str
) -> None:
    model = Judge(provider=provider)
    with pytest.raises(TextEngineError) as refused:
        await judge(said, ["a"], model)
    assert refused.value.code == code
    assert model.asked == []
