"""What happens again and again in the tests of the page."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from tests.browser.browser import pcm16, tone
from tests.browser.scripted import Link, ScriptedServer


def start(page: Page, server: ScriptedServer, **changes: Any) -> Link:
    """Press Talk and let the session be ready."""
    page.click("#talk")
    link = server.link()
    link.ready(**changes)
    return link


def user(link: Link, item: str, previous: str | None) -> None:
    """Let the user have said something that is not transcribed yet."""
    link.send({"type": "input_audio_buffer.speech_started", "item_id": item, "audio_start_ms": 0})
    link.send({"type": "input_audio_buffer.speech_stopped", "item_id": item, "audio_end_ms": 300})
    link.send({"type": "input_audio_buffer.committed", "item_id": item, "previous_item_id": previous})
    content = [{"type": "input_audio", "transcript": None}]
    link.send(message(item, "user", previous, content))


def message(item: str, role: str, previous: str | None, content: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the event that adds a message."""
    fields = {"id": item, "type": "message", "role": role, "status": "completed", "content": content}
    return {"type": "conversation.item.added", "previous_item_id": previous, "item": fields}


def answer(link: Link, item: str, previous: str, text: str, seconds: float) -> None:
    """Let a spoken answer begin."""
    link.send({"type": "response.created", "response": {"id": "resp_1", "conversation_id": "c"}})
    link.send(message(item, "assistant", previous, []))
    link.send({"type": "response.output_audio_transcript.delta", "item_id": item, "delta": text})
    link.item(0, item)
    link.send_audio(0, pcm16(tone(24000, seconds)))


def transcribe(link: Link, item: str, text: str) -> None:
    """Send the words of what the user said."""
    name = "conversation.item.input_audio_transcription.completed"
    link.send({"type": name, "item_id": item, "content_index": 0, "transcript": text})
