"""Things that the brain knows by heart: stories, jokes, a short dialogue."""

from __future__ import annotations

from typing import Final

STORIES: Final = (
    "Once upon a time a small robot lived in a lighthouse at the edge of the sea. Every night it lit "
    "the lamp "
    "and counted the ships that passed. One evening the fog came in so thick that the light could "
    "not be seen "
    "any more. So the robot began to sing. It had never sung before, and it sang badly, but it sang loudly. "
    "Out on the water a captain heard it, turned her ship away from the rocks, and steered by the song until "
    "morning. When the fog had gone, she rowed over to say thank you. The robot asked whether it "
    "should learn "
    "to sing better. Please don't, said the captain. We would never know that it was you.",
    "There was once a gardener who talked to her plants every day. She told them the news, the weather, and "
    "what she had eaten for breakfast. Her neighbours laughed, because plants cannot hear. One "
    "spring she lost "
    "her voice, and for three weeks she could only whisper. That year the tomatoes grew toward her window "
    "instead of toward the sun. Nobody could explain it. But from then on the neighbours said good "
    "morning to "
    "their roses, very quietly, when they thought that no one was listening.",
)

JOKES: Final = (
    "Why did the computer go to the doctor? Because it had caught a virus.",
    "There are ten kinds of people: those who understand binary, and those who don't.",
    "Why was the computer cold? Somebody had left its windows open.",
    "I would tell you a joke about a slow network, but you might not get it until tomorrow.",
)

DIALOGUE: Final = (
    "Here is a little scene for two voices, and I will play both. Good morning, is this the lost property "
    "office? It is. What have you lost? My umbrella, on the number nine bus. What colour is it? "
    "Black. Madam, "
    "I have four hundred black umbrellas. Then it must be one of them! Quite so. How would I "
    "recognise it? It "
    "opens when you least expect it. At that very moment, somewhere on the shelf, four hundred umbrellas "
    "opened at once. And that is the end of the scene. You can interrupt me at any time, by the way. "
    "I stop as "
    "soon as you speak."
)

# What people ask for most, and why this brain has no answer.
REASONS: Final = (
    (r"\b(?:weather|forecast|rain|temperature)\b", "I have no connection to a weather service."),
    (r"\b(?:train|bus|flight|plane)s?\b", "I have no timetables."),
    (r"\b(?:timer|alarm|remind|reminder)\b", "I cannot set timers or reminders."),
    (r"\b(?:news|stocks?|score)\b", "I have no connection to the news."),
    (r"\b(?:capital|population|country|president|history)\b", "I know no geography and no history."),
    (r"\b(?:call|email|message|text) (?!me\b)\w+", "I cannot send messages."),
    (r"\b(?:music|song|sing)\b", "I have only a speaking voice."),
)
