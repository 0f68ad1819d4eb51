"""What the product says about itself."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from voiceapp.text.brain.brain import Brain
from voiceapp.text.brain.guide import GUIDE as GUIDE_FILE
from voiceapp.text.brain.guide import ProductGuide
from voiceapp.text.provider import (
    ReplyRequest,
    Said,
    TextDelta,
)

NOW = dt.datetime(2026, 11, 29, 15, 7)  # a Sunday

GUIDE = ProductGuide(
    "# voiceapp\n\nTalk with an AI in your browser, with captions of both sides.\n\n"
    "```\npython3 manage.py up\n```\n\n| a | b |\n|---|---|\n| not | to be read aloud at all, ever |\n\n"
    "## Azure\n\nSet AZURE_OPENAI_ENDPOINT to talk to a [resource](https://x.y) of your own on Azure.\n"
)


def test_the_guide_reads_only_prose() -> None:
    assert GUIDE.introduction() == "Talk with an AI in your browser, with captions of both sides."
    assert GUIDE.answer("tables read aloud") is None
    assert ProductGuide("").answer("anything at all") is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("What is this app?", "You talk with an AI in the browser."),
        ("How do I install this app?", "Run python3 manage.py up."),
        ("How do I connect to Azure OpenAI?", "set AZURE_OPENAI_ENDPOINT"),
        ("How do I sign in with Microsoft Entra ID to Azure?", "azure-identity"),
        ("Can I use this app without a key?", "So you can talk without a key"),
        ("How do I use my own language model with this app?", "VOICEAPP_TEXT_BASE_URL"),
        ("What languages does the engine understand?", "English only"),
        ("Does this app keep a recording?", "under Past conversations"),
        ("How do I delete a recording?", "nothing here deletes them"),
        ("What tools does this app have?", "set timers"),
        ("How do I add a tool to this app?", "the module voice_tools"),
        ("Can this app call HTTP APIs?", "OpenAPI document"),
        ("Does this app support MCP servers?", "up to 8 MCP servers"),
        ("What are the limits of this app?", "an hour at most"),
        ("Which browser does this app need?", "AudioWorklet"),
        ("Does the engine have a quantum computer?", "embedded engine"),
    ],
)
def test_the_products_own_guide_answers_what_people_ask(asked: str, expected: str) -> None:
    request = ReplyRequest("", (Said("user", asked),))
    deltas = Brain(ProductGuide.load(), lambda: NOW).think(request)
    assert expected in "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def test_each_section_of_the_guide_is_found_by_its_heading_and_read_to_its_end() -> None:
    sections = [
        section.split("\n\n", 1) for section in re.split(r"^#+ ", GUIDE_FILE.read_text(), flags=re.M)[1:]
    ]
    assert len(sections) > 30
    guide = ProductGuide.load()
    for heading, text in sections:
        assert guide.answer(heading) == text.strip()


def test_the_paragraph_under_the_heading_that_is_asked_for_goes_before_one_that_only_mentions_it() -> None:
    guide = ProductGuide(
        "# A\n\nThis paragraph speaks of recordings at some length, but is about others.\n\n"
        "## Recordings\n\nEach conversation is kept as one file with two channels.\n"
    )
    assert guide.answer("Where are recordings?") == "Each conversation is kept as one file with two channels."
    # Without a word of weight in the question there is the introduction.
    assert guide.answer("What is this?") == guide.introduction()


def test_a_paragraph_is_read_without_its_marks_and_to_a_length_that_one_listens_to() -> None:
    sentence = "This *sentence* has `marks` and a [link](https://x.y) in it. "
    read = ProductGuide(f"# A\n\n{sentence * 20}").introduction()
    assert read is not None
    assert read.startswith("This sentence has marks and a link in it.")
    assert len(read) <= 420
    assert read.endswith(".")
