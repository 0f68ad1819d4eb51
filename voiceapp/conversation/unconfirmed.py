"""What the page has sent and no service has made part of the conversation yet, in one order; pure.

While there is no service, everything waits here. Once there is one, speech stays until it is committed, and a
typed message until it is echoed, so that the next connection is given what was lost with the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.audio.pcm import level_dbfs
from voiceapp.conversation.turn import QUIET_DBFS
from voiceapp.protocol import events
from voiceapp.protocol.events import Event, UnknownEvent
from voiceapp.types import JsonObject

SPEECH_MS: Final = 10_000
"""Speech that is kept for a service that is not there, or is lost in the middle of it."""

SILENCE_MS: Final = 2_000
"""What is kept while nobody speaks: the service's word that somebody does comes later than the speech."""

SLACK_MS: Final = 500
"""So much more may gather before the oldest is dropped, so that this is not done for every frame."""

MAX_EVENTS: Final = 32
"""Events of the page that are kept while there is no service to take them."""

Entry = bytes | Event | UnknownEvent

KEPT_WHEN_SENT: Final = (events.InputAudioBufferCommit, events.ConversationItemCreate)


@dataclass(slots=True)
class Unconfirmed:
    """See the module. ``entries`` are frames in the page's format, and events, the oldest first.

    ``missing``: speech was dropped that the next connection should have heard.
    """

    audio_format: AudioFormat
    entries: deque[Entry] = field(default_factory=deque)
    size_bytes: int = 0
    limit_bytes: int = 0
    missing: bool = False
    _keeps_speech: bool = False
    _events: int = 0

    def __post_init__(self) -> None:
        self.keep_speech(True)

    def keep_speech(self, speech: bool) -> None:
        """Keep as much as may be speech, or what silence needs."""
        self._keeps_speech = speech
        kept_ms = SPEECH_MS if speech else SILENCE_MS
        self.limit_bytes = int((kept_ms + SLACK_MS) * self.audio_format.bytes_per_ms)

    def speech(self, frame: bytes) -> None:
        """Keep a frame."""
        self.entries.append(frame)
        self.size_bytes += len(frame)
        if self.size_bytes > self.limit_bytes:
            self.trim()

    def trim(self) -> None:
        """Drop the oldest frames of too many; events stay."""
        wanted = self.limit_bytes - int(SLACK_MS * self.audio_format.bytes_per_ms)
        passed: list[Entry] = []
        while self.size_bytes > wanted:
            entry = self.entries.popleft()
            if isinstance(entry, bytes):
                self.size_bytes -= len(entry)
                self.missing |= self._keeps_speech and not self.missing and self._loud(entry)
            else:
                passed.append(entry)
        self.entries.extendleft(reversed(passed))

    def _loud(self, frame: bytes) -> bool:
        pcm = self.audio_format is AudioFormat.PCM16
        return level_dbfs(frame if pcm else g711.decode(frame, self.audio_format)) >= QUIET_DBFS

    def hold(self, event: Event | UnknownEvent) -> bool:
        """Keep an event until there is a service; return whether there is room for it."""
        if self._events >= MAX_EVENTS:
            return False
        self._append(event)
        return True

    def sent(self, event: Event | UnknownEvent) -> None:
        """Take note of an event that was sent: what may be lost with the connection is kept."""
        if isinstance(event, events.InputAudioBufferClear):
            self._forget_turn()
        elif isinstance(event, KEPT_WHEN_SENT):
            self._append(event)
            while self._events > MAX_EVENTS:
                # A service that confirms nothing.
                self._remove(next(entry for entry in self.entries if not isinstance(entry, bytes)))

    def _append(self, event: Event | UnknownEvent) -> None:
        self.entries.append(event)
        self._events += 1

    def _remove(self, event: Entry) -> None:
        self.entries.remove(event)
        self._events -= 1

    def _forget_turn(self) -> None:
        """Forget the frames of the turn that is spoken now."""
        later: list[Entry] = []
        while self.entries and not isinstance(self.entries[-1], events.InputAudioBufferCommit):
            entry = self.entries.pop()
            if isinstance(entry, bytes):
                self.size_bytes -= len(entry)
            else:
                later.append(entry)
        self.entries.extend(reversed(later))
        self.missing = False

    def committed(self) -> None:
        """The service made an item of what was spoken: up to the first commit, or of its own accord."""
        by_page = any(isinstance(entry, events.InputAudioBufferCommit) for entry in self.entries)
        later: list[Entry] = []
        while self.entries:
            entry = self.entries.popleft()
            if isinstance(entry, bytes):
                self.size_bytes -= len(entry)
            elif isinstance(entry, events.InputAudioBufferCommit):
                self._events -= 1
                break
            else:
                later.append(entry)
        self.entries.extendleft(reversed(later))
        self.missing &= by_page and self.size_bytes > 0

    def commit_refused(self) -> None:
        """The service took the first commit for none; its sound is in the next turn."""
        for entry in self.entries:
            if isinstance(entry, events.InputAudioBufferCommit):
                self._remove(entry)
                return

    def echoed(self, item: JsonObject) -> None:
        """The service has a typed message: that of the id, or the oldest where it gives ids of its own."""
        typed = list(self.typed())
        known = [one for one in typed if one.item.get("id") == item.get("id")]
        if known or (typed and is_typed(item)):
            self._remove((known or typed)[0])

    def typed(self) -> Iterator[events.ConversationItemCreate]:
        """Yield the messages that no service has echoed, the oldest first."""
        return (entry for entry in self.entries if isinstance(entry, events.ConversationItemCreate))

    def connection_lost(self, *, spoken: bool) -> None:
        """Nothing of it is with a service any more; ``spoken``: a turn was being spoken, or may have been."""
        if not spoken:
            self.keep_speech(False)
            self.trim()
            self.missing = False
        self.keep_speech(True)

    def take(self) -> list[Entry]:
        """Give everything away, the oldest first."""
        taken = list(self.entries)
        self.entries.clear()
        self.size_bytes = self._events = 0
        self.missing = False
        return taken


def is_typed(item: JsonObject) -> bool:
    """Whether an item is a message that was typed."""
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return item.get("role") == "user" and any(part.get("type") == "input_text" for part in parts)
