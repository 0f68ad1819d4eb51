"""Answers on their way to the page's loudspeaker: announced, counted, cut, and truncated where they were cut.

Pure. A cut takes two steps: the page is told to stop at once, and the service is told how much was heard as
soon as the page has said so (or has kept silent for ``CUT_SETTLE_MS``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation.actions import (
    Action,
    CutAudio,
    EndAudio,
    Save,
    SendAudio,
    SendBrowser,
    SendUpstream,
)
from voiceapp.conversation.answers.heard import heard_words
from voiceapp.conversation.answers.playback import Playback, Track
from voiceapp.conversation.items import Items
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.protocol import events
from voiceapp.protocol.page import AudioCut, AudioItem, CaptionHeard

_BufferEvent = (
    type[events.OutputAudioBufferStarted]
    | type[events.OutputAudioBufferStopped]
    | type[events.OutputAudioBufferCleared]
)


@dataclass(slots=True)
class Speaker:
    """The page's loudspeaker as the conversation sees it."""

    items: Items
    own: OwnEvents
    playback: Playback = field(default_factory=Playback)

    def play(
        self, event: events.ResponseOutputAudioDelta, audio_format: AudioFormat, now: float
    ) -> list[Action]:
        """Pass samples on; nothing of what was cut reaches the page any more."""
        track = self.playback.receive(event.item_id, event.content_index, event.response_id, now)
        if track is None:
            return []
        data = track.half_sample + event.delta
        whole = len(data) - len(data) % audio_format.sample_bytes
        track.half_sample = data[whole:]
        if not whole:
            return []
        if len(data) > whole:
            data = data[:whole]
        track.received_ms += audio_format.duration_ms(whole)
        samples = SendAudio(track.index, event.item_id, data)
        if track.announced:
            return [samples]
        track.announced = True
        announcement = AudioItem(
            index=track.index,
            item_id=track.item_id,
            content_index=track.content_index,
            response_id=track.response_id,
            format=audio_format,
        )
        return [SendBrowser(announcement), samples]

    def complete(self, item_id: str) -> list[Action]:
        """All audio of an item has come."""
        track = self.playback.complete(item_id)
        return [] if track is None or track.cutting else [EndAudio(track.index, item_id)]

    def complete_all(self) -> list[Action]:
        """No more audio will come of any item: the connection is gone."""
        return [action for item_id in list(self.playback.tracks) for action in self.complete(item_id)]

    def connection_lost(self, now: float) -> None:
        """Ids of responses begin anew with the next connection."""
        self.playback.dropped_responses.clear()
        self.playback.latest_response_id = ""

    def is_cut(self, item_id: str, response_id: str) -> bool:
        """Whether nothing more of an item or its response is to be shown or heard."""
        track = self.playback.tracks.get(item_id)
        return (track is not None and track.cutting) or response_id in self.playback.dropped_responses

    def drop(self, response_id: str) -> None:
        """Let nothing more of a response be shown or heard: it is being cancelled."""
        self.playback.dropped_responses.add(response_id)

    def interrupt(self, response_id: str | None, now: float) -> list[Action]:
        """The user speaks, and the service cancels ``response_id``: what is on its way is dropped."""
        if response_id is not None:
            self.drop(response_id)
        return [*self.cut(now), *self._unheard(response_id)]

    def _unheard(self, response_id: str | None) -> list[Action]:
        """Nothing was heard of spoken items whose words came before any sound: nothing is truncated."""
        silent = [
            item for item in self.items.by_id.values()
            if item.response_id == response_id and item.modality == "audio" and item.role == "assistant"
            and item.heard_text is None and item.item_id not in self.playback.tracks
        ] if response_id else []  # fmt: skip
        for item in silent:
            item.heard_text, item.cut_ms = "", 0
        heard = [CaptionHeard(item_id=item.item_id, heard_text="", cut_ms=0) for item in silent]
        return [*(SendBrowser(caption) for caption in heard), *(Save(item.record()) for item in silent)]

    def began(self, response_id: str) -> bool:
        """Whether any audio of a response has come."""
        return response_id == self.playback.latest_response_id

    def cut(self, now: float) -> list[Action]:
        """Stop what is playing and what is queued."""
        return [
            SendBrowser(AudioCut(item_id=track.item_id, response_id=track.response_id))
            for track in self.playback.begin_cut(now)
        ]

    def report(self, item_id: str, played_ms: float, *, final: bool, now: float) -> list[Action]:
        """Take the page's report of how much of an item its speaker has played."""
        before = self.playback.tracks.get(item_id)
        first = before is not None and before.reported_ms is None
        track = self.playback.report(item_id, played_ms, final=final, now=now)
        if track is None:
            return []
        actions: list[Action] = []
        if first:
            actions.append(self._buffer_event(events.OutputAudioBufferStarted, track))
        if final and track.settle_at_ms is not None:
            actions += self._settle(track, now)
        elif track.drained:
            actions.append(self._buffer_event(events.OutputAudioBufferStopped, track))
        return actions

    def tick(self, now: float) -> list[Action]:
        """Settle the cuts that have waited long enough."""
        due = [track for track in self.playback.settling if (track.settle_at_ms or 0.0) <= now]
        return [action for track in due for action in self._settle(track, now)]

    def finish(self, now: float) -> list[Action]:
        """The session ends: what was not heard is cut, though nobody need be told."""
        self.playback.begin_cut(now)
        settled = [action for track in list(self.playback.settling) for action in self._settle(track, now)]
        return [action for action in settled if not isinstance(action, SendUpstream | SendBrowser)]

    def let_play(self) -> None:
        """The page has all that was sent and plays it to its end, though nobody will hear of it here."""
        for track in self.playback.tracks.values():
            track.drained |= track.complete

    def _settle(self, track: Track, now: float) -> list[Action]:
        cut_ms = self.playback.settle(track, now)
        content_index, end_ms = track.within_part(cut_ms)
        truncate = {
            "type": "conversation.item.truncate",
            "item_id": track.item_id,
            "content_index": content_index,
            "audio_end_ms": end_ms,
        }
        actions: list[Action] = [CutAudio(track.item_id, cut_ms)]
        if track.received_ms > 0:
            # Services refuse to truncate what has no sound.
            actions.insert(0, self.own.send(truncate, "truncate"))
        item = self.items.get(track.item_id)
        if item is not None:
            item.cut_ms = cut_ms
            item.heard_text = heard_words(item.generated_text, cut_ms, track.received_ms)
            heard = CaptionHeard(item_id=item.item_id, heard_text=item.heard_text, cut_ms=cut_ms)
            actions += [SendBrowser(heard), Save(item.record())]
        return [*actions, self._buffer_event(events.OutputAudioBufferCleared, track)]

    def _buffer_event(self, event: _BufferEvent, track: Track) -> SendBrowser:
        return SendBrowser(event(event_id=self.own.next_id(), response_id=track.response_id))
