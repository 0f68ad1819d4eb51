"""What a conversation hands over to be kept: items, responses and calls of tools, each as it is now; pure.

Times are milliseconds on the session's clock.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from voiceapp.types import JsonObject


class ItemRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the conversation; a later record of the same item replaces the earlier.

    ``generated_text`` is all that was said, typed or generated; ``heard_text`` what was heard of it where
    playback was cut at ``cut_ms``, else ``None``. ``transcript_status`` of spoken input is ``pending``,
    ``completed``, ``failed``, or ``doubtful`` where the user committed what holds no speech. ``raw`` is the
    service's item without its sound.
    """

    item_id: str
    previous_item_id: str | None
    type: str
    role: str = ""
    status: str = ""
    response_id: str = ""
    generated_text: str = ""
    heard_text: str | None = None
    cut_ms: int | None = None
    transcript_status: str = ""
    modality: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    raw: dict[str, Any]


class ResponseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A response that is over. ``latency_ms``: from the end of speech to the first audio sent."""

    response_id: str
    status: str
    status_details: JsonObject | None = None
    usage: JsonObject | None = None
    metadata: JsonObject | None = None
    latency_ms: int | None = None


class ToolCallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that is over; ``arguments`` is the model's raw text, valid JSON or not."""

    call_id: str
    item_id: str = ""
    name: str
    arguments: str = ""
    output: str = ""
    status: str = ""
    started_ms: int = 0
    ended_ms: int = 0


Record: TypeAlias = ItemRecord | ResponseRecord | ToolCallRecord
