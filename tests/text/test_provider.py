"""What every provider of text shares: tools with a schema, and a count of tokens where nobody counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voiceapp.text.provider import CHARACTERS_PER_TOKEN, FunctionTool, text_tokens, tokens_of


def test_a_tool_without_parameters_has_the_schema_of_an_empty_object() -> None:
    assert FunctionTool("f").schema == {"type": "object", "properties": {}}
    given_schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert FunctionTool("f", "", given_schema).schema is given_schema


@given(st.text())
def test_a_text_has_a_token_for_every_few_characters_begun(text: str) -> None:
    tokens = text_tokens(text)
    assert (tokens - 1) * CHARACTERS_PER_TOKEN < len(text) <= tokens * CHARACTERS_PER_TOKEN


def test_nothing_takes_no_tokens() -> None:
    assert tokens_of(0) == 0
    assert tokens_of(1) == 1
