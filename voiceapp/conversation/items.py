"""The items of one conversation in their order, and the transcripts that are still due; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from voiceapp.conversation.actions import Action, Save, SendBrowser
from voiceapp.conversation.records import ItemRecord
from voiceapp.protocol import events
from voiceapp.protocol.page import CaptionDoubtful, CaptionFailed
from voiceapp.types import JsonObject

TextEvent = (
    events.ResponseOutputTextDelta
    | events.ResponseOutputTextDone
    | events.ResponseOutputAudioTranscriptDelta
    | events.ResponseOutputAudioTranscriptDone
)

MAX_RAW_BYTES = 64 * 1024
"""Longest item that is kept as the service said it, in JSON, without its sound."""

MAX_RING = 256
"""Items of which one may be guessed to follow another wrongly: they come within a moment."""

MAX_NAME_CHARS = 256
WHAT_IT_IS = ("id", "object", "type", "role", "status", "name", "call_id", "server_label")
"""What is kept of a longer one, as far as each is no longer than a name."""

TRANSCRIPT_TIMEOUT_MS = 15_000.0
"""A transcript that has not come by then is shown as "not transcribed"."""


@dataclass(slots=True, kw_only=True)
class ConversationItem:
    """One item as this side knows it while it grows; see ``ItemRecord`` for the fields."""

    item_id: str
    previous_item_id: str | None = None
    type: str = "message"
    role: str = ""
    status: str = "in_progress"
    response_id: str = ""
    modality: str = "text"
    generated_text: str = ""
    heard_text: str | None = None
    cut_ms: int | None = None
    transcript_status: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    name: str = ""
    call_id: str = ""
    arguments: str = ""
    raw: JsonObject = field(default_factory=dict)
    speaker: str = ""
    transcript_only: bool = False
    """Whether nothing but its transcript has come yet."""
    linked: bool = False
    """Whether the service itself said what comes before it."""

    @classmethod
    def restored(cls, record: ItemRecord) -> ConversationItem:
        """Return a kept item; a call's name, id and arguments stand only in what the service said of it."""
        raw = record.raw
        item = cls(**msgspec.structs.asdict(record))
        item.name, item.call_id = str(raw.get("name") or ""), str(raw.get("call_id") or "")
        item.arguments = str(raw.get("arguments") or "")
        return item

    def record(self) -> ItemRecord:
        """Return the item as it is to be kept now."""
        return ItemRecord(
            item_id=self.item_id,
            previous_item_id=self.previous_item_id,
            type=self.type,
            role=self.role,
            status=self.status,
            response_id=self.response_id,
            generated_text=self.generated_text,
            heard_text=self.heard_text,
            cut_ms=self.cut_ms,
            transcript_status=self.transcript_status,
            modality=self.modality,
            started_ms=self.started_ms,
            ended_ms=self.ended_ms,
            raw=self.raw,
            speaker="" if self.role == "user" else self.speaker,
        )


@dataclass(slots=True)
class Items:
    """Every item by id; ``previous_item_id`` is kept from the event that first named it."""

    captions: bool
    by_id: dict[str, ConversationItem] = field(default_factory=dict)
    last_id: str | None = None
    transcripts_due: dict[str, float] = field(default_factory=dict)
    speech_began: dict[str, float] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    corrected: list[ConversationItem] = field(default_factory=list)
    """Items whose place was guessed wrongly, and that are to be kept anew."""
    speaker: str = ""
    """The name of the assistant who speaks, and to whom an item that comes belongs."""
    deleted: set[str] = field(default_factory=set)
    """What a response may still say of such an item brings it back to nobody."""

    def restore(self, records: Iterable[ItemRecord]) -> None:
        """Begin with what was said before, in order; nothing of it is saved again."""
        for record in records:
            self.by_id[record.item_id] = ConversationItem.restored(record)
            self.last_id = record.item_id

    def get(self, item_id: object) -> ConversationItem | None:
        """Return an item, if it is known."""
        return self.by_id.get(str(item_id))

    def note(self, raw: JsonObject, previous: Any, now: float) -> ConversationItem:
        """Take the service's word for an item.

        ``previous`` is its ``previous_item_id`` where that was said. ``None`` says nothing: some services
        have it for every item. Until one says more, an item follows the one that was added before it.
        """
        said = isinstance(previous, str)
        item_id = str(raw.get("id", ""))
        item = self.by_id.get(item_id)
        if item is None:
            before = previous if said else self.last_id
            started_ms = int(self.speech_began.pop(item_id, now))
            item = ConversationItem(item_id=item_id, previous_item_id=before, started_ms=started_ms)
            item.speaker = self.speaker
            self.by_id[item_id] = item
        elif item.transcript_only and not said and not item.linked:
            item.previous_item_id = self.last_id
        if said and not item.linked:
            # So far it was only guessed, and so may others be that follow it.
            item.previous_item_id, item.linked = previous, True
            self._correct_guesses(item)
        if item.transcript_only or item.item_id not in self.added:
            item.transcript_only = False
            self.added.add(item_id)
            self.last_id = item_id
        read_item(item, raw, captions=self.captions)
        return item

    def _correct_guesses(self, item: ConversationItem) -> None:
        """Undo guesses that make a ring with what the service says of an item."""
        ring: list[ConversationItem] = [item]
        while (
            len(ring) < MAX_RING and (before := self.by_id.get(ring[-1].previous_item_id or "")) is not None
        ):
            if before is item:
                guessed = [one for one in ring if not one.linked]
                for one in guessed:
                    one.previous_item_id = None
                self.corrected += guessed
                return
            ring.append(before)

    def done(self, raw: JsonObject, previous: Any, now: float) -> list[Action]:
        """Take a finished item; one whose transcript is still due is kept once that has come."""
        item = self.note(raw, previous, now)
        corrected, self.corrected = [one for one in self.corrected if one is not item], []
        return [*(Save(one.record()) for one in corrected), *self._finished(item, raw, now)]

    def _finished(self, item: ConversationItem, raw: JsonObject, now: float) -> list[Action]:
        item.ended_ms = int(now)
        if not raw.get("status"):
            # Outputs of tools have none; what is done is complete.
            item.status = "completed"
        if item.transcript_status == "pending":
            self.transcripts_due.setdefault(item.item_id, now + TRANSCRIPT_TIMEOUT_MS)
            return []
        return [Save(item.record())]

    def transcript(self, item_id: str, words: str, status: str, now: float) -> list[Action]:
        """Take a transcript, or take it that there will be none; a repeat changes nothing."""
        self.transcripts_due.pop(item_id, None)
        item = self.by_id.get(item_id)
        if item is None:
            # Its place is not known before the item itself is added.
            started_ms = int(self.speech_began.pop(item_id, now))
            item = ConversationItem(item_id=item_id, role="user", modality="audio", started_ms=started_ms)
            item.previous_item_id, item.transcript_only = self.last_id, True
            self.by_id[item_id] = item
        if item.role == "assistant":
            # Its words are those that it says; a transcript under its id is of somebody else.
            return []
        if item.transcript_status == status and item.generated_text == words.strip():
            return []
        if item.generated_text and not words.strip():
            # Words that are known are not unknown again, whatever comes late.
            return []
        item.generated_text, item.transcript_status = words.strip(), status
        return [Save(item.record())]

    def transcribed(self, item_id: str, words: str, now: float, *, speechless: bool) -> list[Action]:
        """Take a transcript; words of a turn that is ``speechless`` are marked as doubtful."""
        if not speechless or not words.strip():
            return self.transcript(item_id, words, "completed", now)
        doubtful = SendBrowser(CaptionDoubtful(item_id=item_id))
        return [doubtful, *self.transcript(item_id, words, "doubtful", now)]

    def words(self, event: TextEvent) -> None:
        """Take words of an answer that grows, or all of them at its end."""
        item = self.by_id.get(event.item_id)
        if item is None:
            return
        match event:
            case events.ResponseOutputTextDone():
                item.generated_text = event.text
            case events.ResponseOutputAudioTranscriptDone():
                item.generated_text = event.transcript
            case _:
                item.generated_text += event.delta
                item.response_id = event.response_id
                if isinstance(event, events.ResponseOutputAudioTranscriptDelta):
                    item.modality = "audio"

    def has_output(self, raw: JsonObject) -> bool:
        """Whether a call's output is known under another id: services may give one of their own."""
        if raw.get("type") != "function_call_output":
            return False
        return any(
            item.type == "function_call_output" and item.call_id == raw.get("call_id")
            for item in self.by_id.values() if item.item_id != raw.get("id")
        )  # fmt: skip

    def ended(self, raw: JsonObject, now: float) -> list[Action]:
        """Take an item of a response that is over, where nothing else has said that it is done."""
        item = self.by_id.get(str(raw.get("id", "")))
        known = item is not None and item.status != "in_progress"
        if known or not raw.get("id") or raw["id"] in self.deleted:
            return []
        return self.done(raw, UNSET, now)

    def unechoed(self, typed: Iterable[events.ConversationItemCreate], now: float) -> list[Action]:
        """Keep what was typed and never reached a service."""
        return [action for event in typed for action in self.done(event.item, UNSET, now)]

    @property
    def call_ids(self) -> set[str]:
        """The ids of all calls of functions among them, and of their outputs."""
        return {item.call_id for item in self.by_id.values() if item.call_id}

    @property
    def user_turns(self) -> int:
        """How often the user has spoken or typed."""
        return sum(1 for item in self.by_id.values() if item.role == "user")

    def interrupted(self, response_id: str, now: float) -> list[Action]:
        """The response will say no more: what is growing of it is incomplete."""
        growing = [
            item for item in self.by_id.values()
            if item.response_id == response_id and item.status == "in_progress"
        ]  # fmt: skip
        for item in growing:
            item.status, item.ended_ms = "incomplete", int(now)
        return [Save(item.record()) for item in growing]

    def remove(self, item_id: str) -> None:
        """Forget an item that was deleted."""
        self.by_id.pop(item_id, None)
        self.deleted.add(item_id)
        self.transcripts_due.pop(item_id, None)

    def tick(self, now: float) -> list[Action]:
        """Give up the transcripts that have not come in time."""
        return self._wordless([item_id for item_id, due in self.transcripts_due.items() if due <= now], now)

    def finish(self, now: float) -> list[Action]:
        """Nothing more comes from the service: what is pending failed, what is growing is incomplete."""
        growing = [item for item in self.by_id.values() if item.status == "in_progress"]
        for item in growing:
            item.status, item.ended_ms = "incomplete", int(now)
        saved = [Save(item.record()) for item in growing]
        return [*self._wordless(list(self.transcripts_due), now), *saved]

    def _wordless(self, item_ids: list[str], now: float) -> list[Action]:
        actions: list[Action] = []
        for item_id in item_ids:
            actions += self.transcript(item_id, "", "failed", now)
            actions.append(SendBrowser(CaptionFailed(item_id=item_id)))
        return actions


def read_item(item: ConversationItem, raw: JsonObject, *, captions: bool) -> None:
    """Bring ``item`` up to what the service says of it; text that is there already is not lost."""
    item.type = str(raw.get("type") or item.type)
    item.role = str(raw.get("role") or item.role)
    item.status = str(raw.get("status") or item.status)
    item.name = str(raw.get("name") or item.name)
    item.call_id = str(raw.get("call_id") or item.call_id)
    item.arguments = str(raw.get("arguments") or item.arguments)
    texts: list[str] = []
    for part in raw.get("content") or []:
        kind = str(part.get("type", ""))
        if "audio" in kind:
            item.modality = "audio"
        texts.append(str(part.get("text") or part.get("transcript") or ""))
    if item.type == "function_call_output":
        texts = [str(raw.get("output") or "")]
    text = " ".join(part for part in texts if part)
    if text:
        item.generated_text = text
    if item.role == "user" and item.modality == "audio" and not item.transcript_status and captions:
        item.transcript_status = "completed" if text else "pending"
    item.raw = _without_audio(raw)


def _without_audio(raw: JsonObject) -> JsonObject:
    """Return an item without its sound, and a list of tools as their names: descriptions have no end.

    Of one that is too large only what says what it is; its words are kept beside it.
    """
    if isinstance(raw.get("tools"), list):
        raw = {**raw, "tools": [tool.get("name") for tool in raw["tools"] if isinstance(tool, dict)]}
    content = raw.get("content")
    if isinstance(content, list):
        raw = {**raw, "content": [{k: v for k, v in part.items() if k != "audio"} for part in content]}
    if len(msgspec.json.encode(raw)) <= MAX_RAW_BYTES:
        return raw
    names = {name: raw[name] for name in WHAT_IT_IS if isinstance(raw.get(name), str)}
    return {name: value for name, value in names.items() if len(value) <= MAX_NAME_CHARS}
