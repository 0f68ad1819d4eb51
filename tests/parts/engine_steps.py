"""What whoever listens, thinks and speaks may bring to an engine's session, as steps of a random walk."""

from __future__ import annotations

from typing import Any

from tests.parts.engine_parts import Client, quiet
from voiceapp.engine.session.actions import Failed, Opened, Spoken, StartReply, Transcribe
from voiceapp.engine.session.items import TimedWord
from voiceapp.text.provider import CallArguments, CallFinished, CallStarted, Finished, TextDelta


class EngineSteps:
    """Steps of a world whose session is ``engine``; ``pick`` chooses among the replies that were begun."""

    engine: Client
    clock_ms = 0
    tool = "f"
    calls = 0

    def do_stop(self, pick: int) -> None:
        self.engine.take(self.engine.session.speech_stopped(self.clock_ms))

    def do_no_words(self, pick: int) -> None:
        if wanted := self.pending(Transcribe):
            item_id = wanted[pick % len(wanted)].item_id
            self.engine.take(self.engine.session.transcript_failed(item_id, "model_unavailable", "No."))

    def do_opened(self, pick: int) -> None:
        self.bring(pick, Opened(), spoken=True)

    def do_text(self, pick: int) -> None:
        self.bring(pick, TextDelta("some text "), spoken=False)

    def do_audio(self, pick: int) -> None:
        self.bring(pick, Spoken(quiet(250), (TimedWord("word ", 0, 250),)), spoken=True)

    def do_call(self, pick: int) -> None:
        self.calls += 1
        for fact in (
            CallStarted(self.calls, "c", self.tool),
            CallArguments(self.calls, "{}"),
            CallFinished(self.calls),
        ):
            self.bring(pick, fact)

    def do_finish(self, pick: int) -> None:
        self.bring(pick, Finished())

    def do_fail(self, pick: int) -> None:
        self.bring(pick, Failed("server_error", "No."))

    def bring(self, pick: int, fact: Any, *, spoken: bool | None = None) -> None:
        begun = [
            reply for reply in self.replies() if spoken is None or (reply.speaking is not None) == spoken
        ]
        if begun:
            response_id = begun[pick % len(begun)].response_id
            self.engine.take(self.engine.session.reply_progressed(response_id, fact))

    def replies(self) -> list[StartReply]:
        """Return the replies that something may be brought to, those that have ended among them."""
        return self.pending(StartReply)

    def pending(self, kind: type[Any]) -> list[Any]:
        return [action for action in self.engine.actions if isinstance(action, kind)]
