"""The conversation's items as the engine keeps them: order, words, and what audio is left. Pure."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from voiceapp.audio.formats import AudioFormat
from voiceapp.engine.session import validation
from voiceapp.engine.session.fields import checked, refuse_kind
from voiceapp.text.provider import Called, HistoryItem, Returned, Said, text_tokens
from voiceapp.types import JsonObject

# Enough for the last few turns; a session may last an hour and must not keep an hour of audio.
AUDIO_BUDGET_BYTES: Final = 512 * 1024
# Far more than any response reads of it; all is kept in memory until the session ends.
MAX_GIVEN_CHARS: Final = 64 * 1024 * 1024
# What an item costs beyond its words.
_ITEM_CHARS: Final = 1024
# A word of which at least this much was cut off was not heard.
_SLACK_MS: Final = 40.0


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A piece of transcript and when it is heard within its item."""

    text: str
    start_ms: float
    end_ms: float


@dataclass(slots=True)
class SessionItem:
    """One item. ``fields`` is what the client sees, without audio.

    ``heard_text`` is what a user said, even where the client wants no transcript; ``None``: not known yet.
    """

    fields: JsonObject
    audio: bytes = b""
    audio_format: AudioFormat = AudioFormat.PCM16
    audio_ms: float = 0.0
    words: list[TimedWord] = field(default_factory=list)
    heard_text: str | None = None
    cut: bool = False

    @property
    def id(self) -> str:
        """The item's id."""
        return str(self.fields["id"])

    @property
    def kind(self) -> str:
        """The item's ``type``."""
        return str(self.fields["type"])

    @property
    def role(self) -> str:
        """The message's role, or nothing."""
        return str(self.fields.get("role", ""))

    def snapshot(self) -> JsonObject:
        """Return the item as events show it."""
        return copy.deepcopy(self.fields)

    def with_audio(self) -> JsonObject:
        """Return the item as ``conversation.item.retrieved`` shows it: with its audio, if still kept."""
        shown = self.snapshot()
        for part in shown.get("content", []):
            if part["type"] in ("input_audio", "output_audio") and self.audio:
                part["audio"] = base64.b64encode(self.audio).decode()
                part["format"] = self.audio_format.to_ga()
        return shown

    def said_in_audio(self) -> bool:
        """Whether this is something that the assistant spoke."""
        content = self.fields.get("content") or []
        return self.role == "assistant" and any(part["type"] == "output_audio" for part in content)

    def truncate(self, end_ms: int) -> None:
        """Drop audio and words after ``end_ms`` of the item's audio."""
        self.cut = True
        self.audio = self.audio[: end_ms * self.audio_format.bytes_per_ms]
        self.audio_ms = min(self.audio_ms, float(end_ms))
        self.words = [word for word in self.words if word.end_ms <= end_ms + _SLACK_MS]
        for part in self.fields["content"]:
            if part["type"] == "output_audio":
                part["transcript"] = "".join(word.text for word in self.words).rstrip()

    def plain_text(self) -> str:
        """Return what the item says, as text."""
        pieces = [
            part.get("text") or part.get("transcript") or "" for part in self.fields.get("content") or []
        ]
        text = " ".join(piece for piece in pieces if piece)
        return text or self.heard_text or ""


class ConversationItems:
    """Items in order."""

    def __init__(self) -> None:
        self._items: list[SessionItem] = []
        self._given_chars = 0

    def __iter__(self) -> Iterator[SessionItem]:
        return iter(self._items)

    def find(self, item_id: str) -> SessionItem | None:
        """Return the item called ``item_id``."""
        return next((item for item in self._items if item.id == item_id), None)

    @property
    def last_id(self) -> str | None:
        """The id of the newest item."""
        return self._items[-1].id if self._items else None

    def previous_id(self, item_id: str) -> str | None:
        """Return the id of the item before ``item_id``, or ``None`` for the first."""
        before: str | None = None
        for item in self._items:
            if item.id == item_id:
                return before
            before = item.id
        return None

    def insert(self, item: SessionItem, previous_item_id: str | None) -> None:
        """Put ``item`` after another, first (``"root"``), or last (``None`` or empty)."""
        if not previous_item_id:
            self._items.append(item)
        elif previous_item_id == "root":
            self._items.insert(0, item)
        else:
            places = [place for place, other in enumerate(self._items) if other.id == previous_item_id]
            if not places:
                raise validation.refuse(
                    "item_create_invalid_previous_item_id",
                    f"Error adding item: the previous item with id '{previous_item_id}' does not exist.",
                    "previous_item_id",
                )
            self._items.insert(places[0] + 1, item)
        self._trim_audio()

    def admit(self, item: SessionItem) -> None:
        """Count an item that a client gives; raise ``ProtocolError`` where it gave too much already."""
        chars = self._given_chars + _ITEM_CHARS + len(str(item.fields))
        if chars > MAX_GIVEN_CHARS:
            raise validation.refuse(
                "conversation_full",
                f"Error adding item: clients may add {MAX_GIVEN_CHARS} characters to one conversation.",
                "item",
            )
        self._given_chars = chars

    def remove(self, item: SessionItem) -> None:
        """Take an item out."""
        self._items.remove(item)

    def knows_call(self, call_id: str) -> bool:
        """Whether a function call with this id is here."""
        return any(
            item.fields.get("call_id") == call_id for item in self._items if item.kind == "function_call"
        )

    def has_spoken(self) -> bool:
        """Whether the assistant was heard in this conversation."""
        return any(item.said_in_audio() and item.audio_ms for item in self._items)

    def keep_audio(self, item: SessionItem, audio: bytes, audio_format: AudioFormat) -> None:
        """Give ``item`` more audio; the oldest audio beyond the budget is let go."""
        item.audio += audio
        item.audio_format = audio_format
        item.audio_ms += audio_format.duration_ms(len(audio))
        self._trim_audio()

    def _trim_audio(self) -> None:
        total = 0
        for item in reversed(self._items):
            total += len(item.audio)
            if total > AUDIO_BUDGET_BYTES:
                total -= len(item.audio)
                item.audio = b""


def history(items: Iterable[SessionItem]) -> tuple[HistoryItem, ...]:
    """Return items as a text provider reads them; what is not said in words is left out.

    So is a call that never came to its end: it was not made.
    """
    result: list[HistoryItem] = []
    for item in items:
        fields = item.fields
        match item.kind:
            case "function_call" if fields.get("status", "completed") == "completed":
                result.append(Called(fields["call_id"], fields["name"], fields["arguments"]))
            case "function_call_output":
                result.append(Returned(fields["call_id"], fields["output"]))
            case "mcp_call" if fields["status"] in ("completed", "failed"):
                result.append(Called(item.id, fields["name"], fields["arguments"]))
                result.append(Returned(item.id, _tool_output(fields)))
            case "message":
                text = item.plain_text()
                if text or item.role == "user":
                    result.append(Said(fields["role"], text))
    return tuple(result)


def _tool_output(fields: JsonObject) -> str:
    """Return what a call of an MCP server's tool brought, as the output of a function."""
    if fields["error"] is None:
        return str(fields["output"])
    return json.dumps({"error": fields["error"]})


def within(said: Sequence[HistoryItem], tokens: int) -> tuple[HistoryItem, ...]:
    """Return the newest part of a history that is about ``tokens`` long.

    The newest item is always told, and never a tool's output without its call.
    """
    texts = {Said: "text", Called: "arguments", Returned: "output"}
    kept, left = len(said), tokens
    while kept > 0:
        item = said[kept - 1]
        left -= text_tokens(getattr(item, texts[type(item)]))
        if left < 0 and kept < len(said):
            break
        kept -= 1
    gone = {item.call_id for item in said[:kept] if isinstance(item, Called)}
    return tuple(item for item in said[kept:] if not isinstance(item, Returned) or item.call_id not in gone)


# -- items from the client ------------------------------------------------------------------------------

_TEXT: Final = {"type": validation.text(), "text": validation.text()}
_AUDIO: Final = {
    "type": validation.text(),
    "audio": validation.nullable(validation.text()),
    "transcript": validation.nullable(validation.text()),
}
_CONTENT: Final = {
    **{kind: checked(f"content[{kind}]", _TEXT, required=["text"]) for kind in ("input_text", "output_text")},
    **{kind: checked(f"content[{kind}]", _AUDIO) for kind in ("input_audio", "output_audio")},
}
_PARTS: Final = {
    "user": ("input_text", "input_audio"),
    "system": ("input_text",),
    "assistant": ("output_text", "output_audio"),
}
_MAX_REASON_CHARS: Final = 1024
_COMMON: Final = {
    "id": validation.item_id,
    "object": validation.text(),
    "type": validation.text(),
    "status": validation.one_of("completed", "incomplete", "in_progress"),
}
_ITEMS: Final = {
    "message": checked(
        "item[message]",
        {
            **_COMMON,
            "role": validation.one_of(*_PARTS), "content": lambda value, path: value,
            "phase": validation.text(),
        },
        required=["role", "content"],
    ),
    "function_call": checked(
        "item[function_call]",
        {
            **_COMMON,
            "call_id": validation.item_id, "name": validation.text(), "arguments": validation.text(),
        },
        required=["name", "arguments"],
    ),
    "function_call_output": checked(
        "item[function_call_output]",
        {
            **_COMMON,
            "call_id": validation.item_id, "output": validation.text(),
        },
        required=["call_id", "output"],
    ),
    "mcp_approval_response": checked(
        "item[mcp_approval_response]",
        {
            **_COMMON,
            "approval_request_id": validation.item_id, "approve": validation.boolean,
            "reason": validation.nullable(validation.text(_MAX_REASON_CHARS)),
        },
        required=["approval_request_id", "approve"],
    ),
}  # fmt: skip


def read_item(value: Any, path: str, *, new_id: str, call_id: str, audio_format: AudioFormat) -> SessionItem:
    """Check an item from a client and make it one of ours; ids are used where the client gave none."""
    kind = validation.any_object(value, path).get("type")
    if kind is None:
        raise validation.missing(f"{path}.type")
    refuse_kind("item", kind, path)
    if not isinstance(kind, str) or kind not in _ITEMS:
        raise validation.invalid_value(kind, list(_ITEMS), f"{path}.type")
    given: JsonObject = _ITEMS[kind](value, path)
    given.pop("object", None)
    fields: JsonObject = {"id": given.pop("id", new_id), "type": kind}
    if kind not in ("function_call_output", "mcp_approval_response"):
        fields["status"] = "completed"
    fields.update({name: inner for name, inner in given.items() if name not in ("type", "status")})
    if kind == "function_call":
        fields.setdefault("call_id", call_id)
    item = SessionItem(fields)
    if kind == "message":
        item.fields["content"] = _read_parts(item, fields["content"], f"{path}.content", audio_format)
    return item


def _read_parts(item: SessionItem, value: Any, path: str, audio_format: AudioFormat) -> list[JsonObject]:
    if not isinstance(value, list):
        raise validation.wrong_type(path, "an array", value)
    known = _PARTS[item.role]
    parts: list[JsonObject] = []
    for index, part in enumerate(value):
        here = f"{path}[{index}]"
        kind = validation.any_object(part, here).get("type")
        if kind is None:
            raise validation.missing(f"{here}.type")
        refuse_kind("content", kind, here)
        if not isinstance(kind, str) or kind not in known:
            raise validation.invalid_value(kind, list(known), f"{here}.type")
        read: JsonObject = _CONTENT[kind](part, here)
        if audio := read.pop("audio", None):
            item.audio += decode_audio(audio, f"{here}.audio", audio_format)
            item.audio_format = audio_format
            item.audio_ms = audio_format.duration_ms(len(item.audio))
        if kind in ("input_audio", "output_audio"):
            read.setdefault("transcript", None)
        parts.append(read)
    return parts


def decode_audio(text: str, path: str, audio_format: AudioFormat) -> bytes:
    """Return base64 audio as bytes; raise ``ProtocolError`` where it is not base64 or not whole samples."""
    try:
        audio = base64.b64decode(text, validate=True)
    except ValueError:
        raise validation.refuse(
            "invalid_value",
            f"Invalid '{path}'. Expected base64-encoded audio bytes but got an invalid value.",
            path,
        ) from None
    return whole_samples(audio, path, audio_format)


def whole_samples(audio: bytes, path: str, audio_format: AudioFormat) -> bytes:
    """Return ``audio``; raise ``ProtocolError`` where its last sample is cut in two."""
    if len(audio) % audio_format.sample_bytes:
        raise validation.refuse(
            "invalid_value",
            f"Invalid '{path}'. Expected a whole number of {audio_format.sample_bytes}-byte samples but got "
            f"{len(audio)} bytes.",
            path,
        )
    return audio
