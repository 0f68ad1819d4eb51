"""How well the ear understands: shares that must hold on every processor; exits with 1 where one does not.

    python -m tests.benchmarks.bench_ear [--json]

The recogniser's weights are quantised, and processors round them differently, so single words are no matter
for a test. Says the sentences of the tests by the product's own voice, and plays the same sentences by other
voices where ``SHARED_DIR`` has them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from tests.parts.engine_parts import (  # noqa: E402
    RECORDINGS,
    loaded,
    other_voices,
    plain_words,
    quiet,
    recording,
    say,
    word_errors,
)
from voiceapp.audio.formats import AudioFormat  # noqa: E402
from voiceapp.engine.hearing.ear import Ear  # noqa: E402
from voiceapp.engine.hearing.utterance import Utterance  # noqa: E402
from voiceapp.engine.inference.pool import Priority  # noqa: E402
from voiceapp.engine.turns.endpointing import Completeness, judge  # noqa: E402
from voiceapp.process import Process  # noqa: E402

UNFINISHED = (
    "I want to", "I would like", "Can you tell me the", "My name is", "Please book a table for",
    "We went home because", "The weather in", "I was wondering if", "Set a timer for", "It depends on",
    "My number is five five five", "I need", "Let me think, um", "Show me the way to", "He said that they",
    "If it rains tomorrow", "Could you please", "What I really want is", "There are two apples and",
    "She gave it to her",
)  # fmt: skip
WHOLE = (
    "What time is it?", "Tell me a joke.", "I want a ticket.", "My name is John.", "Can you hear me?",
    "Set a timer for ten minutes.", "Thank you very much.", "I live in London.", "Please turn off the light.",
    "How much does it cost?", "That is all I need.", "Where are you from?", "The train leaves at nine.",
    "No, that is wrong.", "What is two plus two?", "Book a table for four people.", "I do not understand.",
    "Say that again please.", "Good morning.", "Let us go home now.",
)  # fmt: skip
CUT_AT = (4, 8, 12)


@dataclass(frozen=True, slots=True)
class Share:
    """A figure between 0 and 1, and the bound that it must keep."""

    value: float
    at_most: float = 1.0
    at_least: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether it does."""
        return self.at_least <= self.value <= self.at_most


def heard(audio: bytes, audio_format: AudioFormat = AudioFormat.PCM16) -> str:
    """Return what the ear makes of a recording."""
    ear = Ear(loaded().detector, audio_format)
    ear.hear(quiet(300, audio_format) + audio + quiet(500, audio_format))
    return asyncio.run(Utterance(loaded(), ear, 0).words(ear.end_ms, Priority.FINAL))


def error_rate(voices: dict[str, bytes], audio_format: AudioFormat) -> float:
    """Return the word error rate over recordings by name."""
    with ThreadPoolExecutor(2) as threads:
        transcripts = list(threads.map(lambda audio: heard(audio, audio_format), voices.values()))
    errors = sum(word_errors(RECORDINGS[name], text) for name, text in zip(voices, transcripts, strict=True))
    return errors / sum(len(plain_words(RECORDINGS[name])) for name in voices)


def judged(texts: tuple[str, ...], *endings: Completeness) -> float:
    """Return the share of texts that are judged so when the voice has said and the ear has heard them."""
    with ThreadPoolExecutor(2) as threads:
        found = [judge(text) for text in threads.map(heard, map(say, texts))]
    return sum(one in endings for one in found) / len(found)


def cut_words() -> float:
    """Return the share of words wrong in speech that is cut at the end of one of its words."""
    errors = words = 0
    for text in (RECORDINGS["austen-2"], RECORDINGS["timer"]):
        speech = loaded().voice.speak(text)
        for count in CUT_AT:
            kept = speech.words[:count]
            samples = speech.samples[: int(kept[-1].end_ms * 24) * 2]
            errors += word_errors("".join(word.text for word in kept), heard(samples))
            words += count
    return errors / words


def measure() -> dict[str, Share]:
    """Return every share by its name."""
    found = {}
    for audio_format in AudioFormat:
        own = {name: recording(name, audio_format) for name in RECORDINGS}
        found[f"words wrong, own voice, {audio_format.name}"] = Share(error_rate(own, audio_format), 0.08)
        if others := other_voices(audio_format):
            name = f"words wrong, other voices, {audio_format.name}"
            found[name] = Share(error_rate(others, audio_format), 0.05)
    cut_short = (Completeness.UNFINISHED, Completeness.HANGING)
    found |= {
        "words wrong at a cut": Share(cut_words(), 0.2),
        "unfinished sentences taken to be over": Share(judged(UNFINISHED, Completeness.OVER), 0.1),
        "unfinished sentences known as such": Share(judged(UNFINISHED, *cut_short), at_least=0.85),
        "whole sentences known as such": Share(judged(WHOLE, Completeness.OVER), at_least=0.65),
        "whole sentences taken to be unfinished": Share(judged(WHOLE, *cut_short), 0.1),
    }
    return found


def main() -> None:
    """Measure and print; exit with 1 where a share does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with Process():
        found = measure()
    if options.json:
        json.dump({name: round(share.value, 4) for name, share in found.items()}, sys.stdout, indent=1)
    else:
        for name, share in found.items():
            print(f"{share.value:6.1%}  {'' if share.holds else 'MISSED: '}{name}")
    sys.exit(not all(share.holds for share in found.values()))


if __name__ == "__main__":
    main()
