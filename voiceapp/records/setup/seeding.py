"""The assistant that a new installation starts with."""

from __future__ import annotations

from typing import Any

from django.apps import apps as installed_apps

INSTRUCTIONS = (
    "You are a friendly, attentive voice assistant. You are heard, not read: answer in one to three short "
    "sentences of plain spoken language, without lists, headings, emoji or addresses to spell out. Answer in "
    "the language that the user speaks. When a question is unclear, ask one short question back. When you "
    "do not know something, say so. Never claim to have done something that you cannot do. If the user "
    "interrupts you, drop what you were saying and listen."
)

TOOLS = (
    "calculate", "convert_units", "current_time", "set_timer", "list_timers", "cancel_timer", "take_note",
    "list_notes", "delete_note", "undo_delete_note", "search_conversations", "hand_over", "hang_up",
)  # fmt: skip
"""All that come along; the one that deletes asks first."""


def seed_assistant(*, using: str, apps: Any = installed_apps, **kwargs: Any) -> None:
    """Make the general assistant where a migrated database holds none.

    A handler of ``post_migrate``: an installation whose assistants were all deleted gets one back.
    """
    try:
        assistants = apps.get_model("records", "Assistant").objects.using(using)
    except LookupError:
        return  # migrated back to before there were assistants
    if not assistants.exists():
        assistants.create(
            slug="assistant",
            name="Assistant",
            instructions=INSTRUCTIONS,
            turn_detection={"type": "server_vad", "create_response": True, "interrupt_response": True},
            transcription={},
            tools=list(TOOLS),
        )
