"""What a session's tools can do in it: timers that speak, hanging up, handing over, notes, and recalling.

Things that the model shall say or that change who speaks wait for a quiet moment: nobody speaks, nothing is
played, no answer is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID, uuid4

import msgspec

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.actions import Action, notice
from voiceapp.conversation.conversation import Conversation
from voiceapp.errors import ToolFailed, VoiceAppError
from voiceapp.protocol import codec
from voiceapp.records.store import notes, search, store
from voiceapp.relay.session.ending import Ending
from voiceapp.relay.session.timers import SessionTimers
from voiceapp.tools.capabilities import Capabilities, Mention


class Host(Protocol):
    """The session whose tools these are."""

    id: UUID
    user_id: int
    conversation: Conversation
    assistant: AssistantConfig

    def now(self) -> float:
        """Return the session's clock, in milliseconds."""

    def perform(self, due: list[Action]) -> None:
        """Do what the conversation asks for."""

    def end(self, ending: Ending, error: VoiceAppError | None = None) -> None:
        """Ask the session to end."""

    def speak_as(self, assistant: AssistantConfig) -> None:
        """Go on with another assistant, over a new connection to the service."""


class Abilities:
    """See the module; ``tick`` is called a few times a second."""

    def __init__(self, host: Host, ends_ms: float) -> None:
        self._host = host
        self.timers = SessionTimers(host.now, ends_ms)
        self._leaving_after: int | None = None
        self._next: AssistantConfig | None = None

    def of_call(self, call_id: str) -> Capabilities:
        """Return the doors for one call of a tool."""
        host = self._host
        return Capabilities(
            self.timers, _Notes(host.user_id), _Past(host.user_id, host.id), _Call(self, host, call_id)
        )

    @property
    def waiting(self) -> bool:
        """Whether something is still to be said: such a session is not idle."""
        return bool(self.timers.pending)

    def leave(self) -> None:
        """End the call at the next quiet moment, unless the user speaks or types first."""
        self._leaving_after = self._turns_of_user()

    def follow(self, assistant: AssistantConfig) -> None:
        """Let another assistant go on from the next quiet moment; who was about to hang up does not."""
        self._next, self._leaving_after = assistant, None

    def tick(self) -> None:
        """Do what was waiting for a quiet moment, if this is one."""
        conversation, now = self._host.conversation, self._host.now()
        if self._leaving_after is not None:
            stays = conversation.turn.speaking or self._turns_of_user() > self._leaving_after
            self._leaving_after = None if stays else self._leaving_after
        if not conversation.agreement.ready or not conversation.quiet(now):
            return
        if self._leaving_after is not None:
            self._host.end(Ending.BY_ASSISTANT)
        elif self._next is not None:
            assistant, self._next = self._next, None
            self._host.speak_as(assistant)
        elif due := self.timers.take_due():
            self._announce(" ".join(f"{timer.name} is over." for timer in due), now)

    def _turns_of_user(self) -> int:
        return sum(1 for item in self._host.conversation.items.by_id.values() if item.role == "user")

    def _announce(self, news: str, now: float) -> None:
        """Have the model say something, in the conversation and in its turn.

        The item is known here before the service echoes it, so that it survives a lost connection.
        """
        conversation = self._host.conversation
        text = f"{news} Tell the user so now."
        item = {
            "id": f"news_{uuid4().hex[:20]}",
            "type": "message",
            "role": "system",
            "content": [{"type": "input_text", "text": text}],
        }
        conversation.items.note({**item, "status": "completed"}, None, now)
        create = {"type": "conversation.item.create", "item": item}
        self._host.perform([conversation.own.send(create, "announcement")])
        ask = codec.client_event({"type": "response.create"})
        self._host.perform(conversation.receive_client(ask, now))

    def farewell(self, ending: Ending) -> list[Action]:
        """The session ends: say which timers will not be heard, unless another session takes them along."""
        if ending in (Ending.MOVED, Ending.CONTINUED):
            return []
        names = [timer.name for timer in self.timers.pending]
        if not names:
            return []
        told = f"{'; '.join(names)}: the conversation ended first, so nobody will tell you."
        return [notice("timers_dropped", told, "warning")]


class _Call:
    def __init__(self, abilities: Abilities, host: Host, call_id: str) -> None:
        self._abilities = abilities
        self._host = host
        self._call_id = call_id

    def end_after_answer(self) -> None:
        functions = self._host.conversation.calls.functions
        call = functions.pending.get(self._call_id)
        if call is not None and self._host.conversation.speaker.began(call.response_id):
            # The goodbye came along with the call; another one would be odd.
            functions.silent.add(self._call_id)
        self._abilities.leave()

    async def hand_over(self, name: str) -> str:
        offered = await store.assistants_for_sessions()
        others = [one for one in offered if one.slug != self._host.assistant.slug]
        wanted = name.casefold()
        found = [one for one in others if wanted in (one.name.casefold(), one.slug.casefold())]
        found = found or [one for one in others if wanted in one.name.casefold()]
        if not found:
            known = ", ".join(one.name for one in others[:20]) or "nobody else"
            raise ToolFailed(f"There is no {name} here. There is {known}.", code="assistant_unknown")
        await store.change_assistant(self._host.id, found[0])
        # The new one has the word next, and not the one who was asked.
        self._host.conversation.calls.functions.silent.add(self._call_id)
        self._abilities.follow(found[0])
        return found[0].name


class _Notes:
    def __init__(self, user_id: int) -> None:
        self._user_id = user_id

    async def save(self, text: str) -> None:
        try:
            await notes.save(self._user_id, text)
        except VoiceAppError as error:
            raise ToolFailed(error.message, code=error.code) from error

    async def find(self, words: str) -> Sequence[str]:
        return await notes.find(self._user_id, words)

    async def delete(self, words: str) -> Sequence[str]:
        return await notes.delete(self._user_id, words)


class _Past:
    def __init__(self, user_id: int, session_id: UUID) -> None:
        self._user_id = user_id
        self._session_id = session_id

    async def search(self, words: str) -> Sequence[Mention]:
        found = await search.search(self._user_id, words, but=self._session_id)
        return [Mention(f"{one.started_at:%d %B %Y}", one.title, one.excerpt) for one in found]


def with_captions_of(assistant: AssistantConfig, *, captions: bool) -> AssistantConfig:
    """Return the assistant; where no deployment transcribes, the page shows speech without words."""
    return assistant if captions else msgspec.structs.replace(assistant, transcription=None)
