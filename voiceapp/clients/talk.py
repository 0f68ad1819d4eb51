"""A page without a browser: drives ``/ws/voice/`` with a sound file in real time, as ``manage.py talk`` does.

It plays what it receives on a clock instead of a loudspeaker and reports that like a page, so turns,
barge-in and records are the same.
"""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import soundfile
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from voiceapp.audio import g711
from voiceapp.audio.formats import AudioFormat
from voiceapp.clients.sound_file import Sound, read_sound
from voiceapp.errors import UpstreamError
from voiceapp.protocol.page import ClientMessage, PlaybackReport, SessionEnd, SessionStart
from voiceapp.records.display import inert
from voiceapp.types import JsonObject

FRAME_S = 0.02
REPORT_S = 0.2
QUIET_S = 1.5
"""After the file, the conversation is over when nothing has happened for so long."""
PATIENCE_S = 60.0
"""How long the last answer may take to come."""


@dataclass
class SpokenTurn:
    """One exchange: what was said, what was answered, and how long that took.

    ``first_audio_ms`` runs from the service's end of speech (or from the typed text) to the first audio,
    ``from_last_word_ms`` from the last sample of speech.
    """

    user: str = ""
    assistant: str = ""
    heard: str | None = None
    first_audio_ms: int | None = None
    from_last_word_ms: int | None = None
    first_partial_ms: int | None = None
    item_id: str = field(default="", repr=False)
    stopped_at: float | None = field(default=None, repr=False)
    last_word_at: float | None = field(default=None, repr=False)
    speech_at: float | None = field(default=None, repr=False)

    def public(self) -> dict[str, Any]:
        """Return what is printed."""
        hidden = {"item_id", "stopped_at", "last_word_at", "speech_at"}
        return {name: value for name, value in asdict(self).items() if name not in hidden}


@dataclass
class _Playing:
    """One answer's audio on its way to a loudspeaker that is only a clock."""

    item_id: str
    data: bytearray = field(default_factory=bytearray)
    played_ms: float = 0.0
    closed: bool = False


class Talk:
    """One conversation. ``say`` is told each line of it as it comes.

    Nobody is there to be asked: calls of tools that need a word are allowed by ``allow_tools``, or refused.
    """

    def __init__(self, say: Callable[[str], None], *, allow_tools: bool = False) -> None:
        self.say = say
        self.allow_tools = allow_tools
        self.turns: list[SpokenTurn] = []
        self.session_id = ""
        self.input = self.output = AudioFormat.PCM16
        self.turn_detection: dict[str, Any] | None = None
        self.push_to_talk = False
        self.notices: list[dict[str, Any]] = []
        self.ended: dict[str, Any] = {}
        self._socket: ClientConnection
        self._ready = asyncio.Event()
        self._seq = 0
        self._playing: dict[str, _Playing] = {}
        self._index: dict[int, _Playing] = {}
        self._cut: set[str] = set()
        self._answers: dict[str, SpokenTurn] = {}
        self._busy = 0
        self._moved_at = 0.0
        self._began_at = 0.0
        self._answer: str | None = None

    async def run(
        self, url: str, cookie: str, *, file: Path | None, texts: list[str], start: SessionStart
    ) -> None:
        """Hold the conversation that ``start`` asks for.

        Raises ``UpstreamError`` where there is none to be had, ``AudioFormatError`` where a file is no sound.
        """
        address = url.rstrip("/")
        # Before the line is opened: what cannot be read leaves no session that waits for its page.
        sound = await asyncio.to_thread(read_sound, file) if file else None
        try:
            async with connect(
                f"{address.replace('http', 'ws', 1)}/ws/voice/",
                additional_headers={"Cookie": cookie},
                origin=address,  # type: ignore[arg-type]
                compression=None,
                proxy=None,
            ) as self._socket:
                await self._send(start)
                async with asyncio.TaskGroup() as group:
                    reader = group.create_task(self._read())
                    speaker = group.create_task(self._play())
                    group.create_task(self._converse(sound, texts, reader)).add_done_callback(
                        lambda _: speaker.cancel()
                    )
        except* InvalidStatus as refusals:
            raise UpstreamError(f"The server at {url} refuses: {_words(refusals)}") from refusals
        except* (OSError, InvalidHandshake) as errors:
            raise UpstreamError(f"There is no server at {url} ({errors.exceptions[0]}).") from errors

    async def _converse(self, sound: Sound | None, texts: list[str], reader: asyncio.Task[None]) -> None:
        ready = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait({ready, reader}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._ready.is_set():
            if sound is not None:
                await self._speak(sound)
            for text in texts:
                await self._type(text)
            await self._send(SessionEnd())
        await reader

    async def _speak(self, sound: Sound) -> None:
        data = await asyncio.to_thread(sound.encoded, self.input)
        size = int(self.input.bytes_per_ms * FRAME_S * 1000)
        silence = self.input.silence * (size // self.input.sample_bytes)
        self._began_at = time.monotonic()
        sent, ended_at = 0, None
        while not self.ended:
            at = sent * size
            if at >= len(data) and ended_at is None:
                ended_at = self._moved_at = time.monotonic()
                if self.push_to_talk:
                    await self._send({"type": "input_audio_buffer.commit"})
                    await self._send({"type": "response.create"})
                    self._busy += 1
            if ended_at is not None and self._over(ended_at):
                return
            frame = data[at : at + size]
            if not self.push_to_talk or frame:
                await self._socket.send((frame + silence)[:size] if frame else silence)
            sent += 1
            await asyncio.sleep(max(0.0, self._began_at + sent * FRAME_S - time.monotonic()))

    def _over(self, since: float) -> bool:
        now = time.monotonic()
        quiet = not self._busy and now - self._moved_at > QUIET_S
        return quiet or now - since > PATIENCE_S

    async def _type(self, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        self.turns.append(SpokenTurn(user=text, stopped_at=time.monotonic()))
        self.say(f"You: {text}")
        self._answer, self._busy, since = None, self._busy + 1, time.monotonic()
        await self._send({"type": "conversation.item.create", "item": item})
        await self._send({"type": "response.create"})
        self._moved_at = since
        while not self._answered() and time.monotonic() - since < PATIENCE_S:  # noqa: ASYNC110
            await asyncio.sleep(FRAME_S)

    def _answered(self) -> bool:
        """Whether the typed turn is over: answered and played to the end, or nothing more will come."""
        return bool(self.ended) or (self._answer is not None and not self._busy)

    # -- the loudspeaker ----------------------------------------------------------------------------

    async def _play(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            left = REPORT_S * 1000
            for track in list(self._playing.values()):
                due = self.output.duration_ms(len(track.data)) - track.played_ms
                step = min(left, due)
                track.played_ms += step
                left -= step
                drained = track.closed and track.played_ms >= self.output.duration_ms(len(track.data)) - 0.5
                if step or drained:
                    self._moved_at = time.monotonic()
                    await self._report(track, final=drained)
                if drained:
                    del self._playing[track.item_id]
                    self._busy -= 1
                elif left <= 0:
                    break

    async def _report(self, track: _Playing, *, final: bool) -> None:
        await self._send(
            PlaybackReport(item_id=track.item_id, played_ms=int(track.played_ms), final=final, seq=self._seq)
        )

    # -- what comes ---------------------------------------------------------------------------------

    async def _send(self, message: ClientMessage | JsonObject) -> None:
        """Send a message of the page's protocol, or a Realtime event."""
        try:
            await self._socket.send(json.dumps(msgspec.to_builtins(message)))
        except ConnectionClosed:
            self.ended = self.ended or {"reason": "closed"}

    async def _read(self) -> None:
        try:
            async for message in self._socket:
                if isinstance(message, bytes):
                    self._seq += 1
                    self._audio(int.from_bytes(message[:4], "big"), message[4:])
                    continue
                event = json.loads(message)
                self._seq = event.get("seq", self._seq)
                await self._event(event)
        except ConnectionClosed:
            pass
        self.ended = self.ended or {"reason": "closed"}

    def _audio(self, index: int, samples: bytes) -> None:
        track = self._index[index]
        if track.item_id in self._cut:
            return
        if not track.data:
            self._first_audio()
        track.data += samples

    def _first_audio(self) -> None:
        now = time.monotonic()
        turn = self.turns[-1] if self.turns else None
        if turn is None or turn.first_audio_ms is not None or turn.stopped_at is None:
            return
        turn.first_audio_ms = round(1000 * (now - turn.stopped_at))
        if turn.last_word_at is not None:
            turn.from_last_word_ms = round(1000 * (now - turn.last_word_at))

    async def _event(self, event: dict[str, Any]) -> None:  # noqa: C901 - a table
        match event["type"]:
            case "session.ready":
                self._begin(event)
            case "notice":
                self.notices.append(event)
                self.say(f"[{event['message']}]")
            case "error":
                self.say(f"[error: {event['error'].get('message')}]")
            case "approval.requested":
                await self._allow(event)
            case "session.ended":
                self.ended = event
            case "audio.item":
                track = _Playing(event["item_id"])
                self._index[event["index"]] = self._playing[track.item_id] = track
                self._busy += 1
            case "audio.cut":
                await self._stop(event["item_id"])
            case "response.output_audio.done":
                if ended := self._playing.get(event["item_id"]):
                    ended.closed = True
            case "response.done":
                await self._response_done(event["response"])
            case _:
                self._words(event)

    async def _allow(self, asked: dict[str, Any]) -> None:
        role = f" of {asked['server_label']}" if asked["server_label"] else ""
        said = "allowed" if self.allow_tools else "refused; --allow-tools allows it"
        call = inert(f"{asked['name']}{role} may be called with {asked['arguments'] or 'nothing'}?")
        self.say(f"[{call} {said}]")
        answer = {"approval_request_id": asked["approval_request_id"], "approve": self.allow_tools}
        item = {"type": "mcp_approval_response", **answer}
        await self._send({"type": "conversation.item.create", "item": item})

    def _begin(self, event: dict[str, Any]) -> None:
        self.session_id = event["session_id"]
        self.input = AudioFormat.parse(event["audio"]["input"])
        self.output = AudioFormat.parse(event["audio"]["output"])
        self.turn_detection = event["turn_detection"]
        self.push_to_talk = self.turn_detection is None
        self._ready.set()

    async def _stop(self, item_id: str) -> None:
        self._cut.add(item_id)
        track = self._playing.pop(item_id, None)
        if track is not None:
            self._busy -= 1
            del track.data[int(track.played_ms) * self.output.bytes_per_ms :]
            await self._report(track, final=True)

    async def _response_done(self, response: dict[str, Any]) -> None:
        for item in response.get("output") or []:
            if track := self._playing.get(item.get("id", "")):
                track.closed = True
        self._moved_at = time.monotonic()
        if any(item.get("type") == "function_call" for item in response.get("output") or []):
            # The answer follows when the tools have returned.
            return
        self._answer = response.get("status", "done")
        typed = self.turns and self.turns[-1].item_id == ""
        if (typed or self.push_to_talk) and self._busy:
            self._busy -= 1

    def _words(self, event: dict[str, Any]) -> None:  # noqa: C901 - a table
        kind, now = event["type"], time.monotonic()
        if kind == "input_audio_buffer.speech_started":
            self.turns.append(
                SpokenTurn(item_id=event["item_id"], speech_at=self._sent_at(event["audio_start_ms"]))
            )
            self._busy += 1
        elif kind == "input_audio_buffer.speech_stopped":
            spoken = self._turn(event["item_id"])
            # The end that the service names includes the silence by which it knew.
            silence_ms = self._detection("silence_duration_ms")
            spoken.stopped_at, spoken.last_word_at = now, self._sent_at(event["audio_end_ms"] - silence_ms)
            self._busy -= 1
        elif kind == "conversation.item.input_audio_transcription.delta":
            spoken = self._turn(event["item_id"])
            if spoken.first_partial_ms is None and spoken.speech_at is not None:
                spoken.first_partial_ms = round(1000 * (now - spoken.speech_at))
        elif kind == "conversation.item.input_audio_transcription.completed":
            self._turn(event["item_id"]).user = event["transcript"].strip()
            self.say(f"You: {event['transcript'].strip()}")
        elif kind == "conversation.item.added" and event["item"].get("role") == "assistant":
            self._answers[event["item"]["id"]] = self.turns[-1] if self.turns else self._turn("")
        elif kind in ("response.output_audio_transcript.delta", "response.output_text.delta"):
            if answered := self._answers.get(event["item_id"]):
                answered.assistant += event["delta"]
        elif kind in ("response.output_audio_transcript.done", "response.output_text.done"):
            self.say(f"Assistant: {event.get('transcript') or event.get('text') or ''}")
        elif kind == "caption.heard":
            self._heard(event)
        else:
            return
        self._moved_at = now

    def _heard(self, event: dict[str, Any]) -> None:
        self.say(f"[interrupted after {event['cut_ms']} ms: {event['heard_text']!r} was heard]")
        if answered := self._answers.get(event["item_id"]):
            answered.heard = event["heard_text"]

    def _detection(self, name: str) -> float:
        return float((self.turn_detection or {}).get(name) or 0)

    def _turn(self, item_id: str) -> SpokenTurn:
        for turn in self.turns:
            if turn.item_id == item_id:
                return turn
        turn = SpokenTurn(item_id=item_id)
        self.turns.append(turn)
        return turn

    def _sent_at(self, audio_ms: float) -> float:
        """Return when the sample at ``audio_ms`` of the microphone was sent."""
        return self._began_at + audio_ms / 1000

    # -- results ------------------------------------------------------------------------------------

    def reply_wav(self) -> bytes:
        """Return all answers as they were heard, one after the other, as a WAV file."""
        data = b"".join(bytes(track.data) for _, track in sorted(self._index.items()))
        samples = data if self.output is AudioFormat.PCM16 else g711.decode(data, self.output)
        file = io.BytesIO()
        soundfile.write(
            file, np.frombuffer(samples, "<i2"), self.output.rate_hz, format="WAV", subtype="PCM_16"
        )
        return file.getvalue()

    def reply_ms(self) -> int:
        """Return how long the answers last, as heard, in milliseconds."""
        return int(self.output.duration_ms(sum(len(track.data) for track in self._index.values())))


def _words(refusals: BaseExceptionGroup[InvalidStatus]) -> str:
    """Return what the server says of a handshake that it refused: its sentence, or the status."""
    error = refusals.exceptions[0]
    assert isinstance(error, InvalidStatus)
    try:
        body = json.loads(error.response.body or b"")
        return str(body["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.response.status_code}."
