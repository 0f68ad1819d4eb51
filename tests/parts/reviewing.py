"""Sessions that are over, and a chat service that reads them."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils import timezone

from tests.parts.chat_server import chunk
from voiceapp.records.models import Item, Session

STOP = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})

USAGE = chunk(usage={"prompt_tokens": 110, "completion_tokens": 30, "total_tokens": 140})


def kept_session(user: User, *turns: tuple[str, str, str | None]) -> Session:
    """Keep a session of (role, text, heard text)."""
    session = Session.objects.create(
        user=user, configuration={"name": "Ada"}, upstream="embedded", process="x",
        started_at=timezone.now(), ended_at=timezone.now(), item_count=len(turns),
    )  # fmt: skip
    for number, (role, words, heard) in enumerate(turns):
        Item.objects.create(
            session=session, item_id=f"i{number}", previous_item_id=f"i{number - 1}" if number else None,
            type="message", role=role, generated_text=words, heard_text=heard, raw={},
        )  # fmt: skip
    return session


TURNS = (
    ("user", "Hello, can you hear me?", None),
    ("assistant", "Yes. What can I do for you?", None),
    ("user", "I want to book a train ticket to Hamburg. The ticket should be for two people.", None),
    ("assistant", "When does the train leave, and from which station?", "When does the train"),
)
