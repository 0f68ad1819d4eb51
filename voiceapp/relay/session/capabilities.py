"""What a session's tools can do in it: timers that speak, hanging up, handing over, notes, and recalling.

Things that the model shall say or that change who speaks wait for a quiet moment: nobody speaks, nothing is
played, no answer is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from typing import Protocol
from uuid import UUID, uuid4

from django.utils import timezone

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.conversation.actions import Action, notice
from voiceapp.conversation.conversation import Conversation
from voiceapp.errors import ToolFailed, VoiceAppError
from voiceapp.records.store import notes, search, store
from voiceapp.relay.session.clock import SessionClock
from voiceapp.relay.session.ending import EndReason
from voiceapp.relay.session.timers import SessionTimers
from voiceapp.tools.capabilities import Capabilities, KeptNote, Mention


class Host(Protocol):
    """The session whose tools these are."""

    conversation: Conversation
    clock: SessionClock

    @property
    def id(self) -> UUID:
        """The session's id."""

    @property
    def user_id(self) -> int:
        """Whose session it is."""

    def perform(self, due: list[Action]) -> None:
        """Do what the conversation asks for."""

    def end(self, reason: EndReason, error: VoiceAppError | None = None) -> None:
        """Ask the session to end."""

    def hand_over(self, assistant: AssistantConfig) -> None:
        """Go on with another assistant, over a new connection to the service."""


class SessionCapabilities:
    """See the module; ``tick`` is called a few times a second.

    ``now`` is the session's clock, ``ends_ms`` when the session ends at last, ``zone`` the user's time zone,
    ``None`` if not known. The session itself is handed to what needs it: it owns this, and would be kept in
    memory by being held here.
    """

    def __init__(self, now: Callable[[], float], ends_ms: float, zone: tzinfo | None = None) -> None:
        self._zone = zone
        self.timers = SessionTimers(now, ends_ms)
        self._leaving_after: int | None = None
        self._next: AssistantConfig | None = None

    @contextmanager
    def of_call(self, host: Host, call_id: str) -> Iterator[Capabilities]:
        """Give what one call of a tool can do in the session, for as long as the call lasts."""
        control = _CallControl(self, host, call_id)
        try:
            past = _Past(host.user_id, host.id, self._zone)
            yield Capabilities(self.timers, _Notes(host.user_id), past, control)
        finally:
            control.end()

    @property
    def waiting(self) -> bool:
        """Whether something is still to be said: such a session is not idle."""
        return bool(self.timers.pending)

    def leave(self, user_turns: int) -> None:
        """End the call at the next quiet moment, unless the user has more than these turns by then."""
        self._leaving_after = user_turns

    def follow(self, assistant: AssistantConfig) -> None:
        """Let another assistant go on from the next quiet moment; who was about to hang up does not."""
        self._next, self._leaving_after = assistant, None

    def tick(self, host: Host) -> None:
        """Do what was waiting for a quiet moment, if this is one."""
        conversation, now = host.conversation, host.clock.now()
        if self._leaving_after is not None:
            stays = conversation.user_speaks or conversation.user_turns > self._leaving_after
            self._leaving_after = None if stays else self._leaving_after
        if not conversation.ready or not conversation.quiet(now):
            return
        if self._leaving_after is not None:
            host.end(EndReason.BY_ASSISTANT)
        elif self._next is not None:
            assistant, self._next = self._next, None
            host.hand_over(assistant)
        elif due := self.timers.take_due():
            over = " ".join(f"{timer.name} is over." for timer in due)
            announcement_id = f"news_{uuid4().hex[:20]}"
            host.perform(conversation.announce(f"{over} Tell the user so now.", announcement_id, now))

    def farewell(self, reason: EndReason) -> list[Action]:
        """The session ends: say which timers will not be heard, unless another session takes them along."""
        if reason in (EndReason.MOVED, EndReason.CONTINUED):
            return []
        names = [timer.name for timer in self.timers.pending]
        if not names:
            return []
        sentence = f"{'; '.join(names)}: the conversation ended first, so nobody will tell you."
        return [notice("timers_dropped", sentence, "warning")]


class _CallControl:
    def __init__(self, capabilities: SessionCapabilities, host: Host, call_id: str) -> None:
        self._capabilities = capabilities
        self._under_way: Host | None = host
        self._call_id = call_id

    def end(self) -> None:
        """Let go of the session: a thread that goes on after its call, and keeps this, must not keep it."""
        self._under_way = None

    @property
    def _host(self) -> Host:
        if self._under_way is None:
            raise ToolFailed("That can be done only while the call runs.", code="call_over")
        return self._under_way

    def end_after_answer(self) -> None:
        conversation = self._host.conversation
        if conversation.answer_began(self._call_id):
            # The goodbye came along with the call; another one would be odd.
            conversation.finish_call_silently(self._call_id)
        self._capabilities.leave(conversation.user_turns)

    async def hand_over(self, name: str) -> str:
        host = self._host
        offered = await store.assistants_for_sessions()
        speaking = host.conversation.assistant
        others = [one for one in offered if one.slug != speaking.slug]
        wanted = name.casefold()
        found = [one for one in others if wanted in (one.name.casefold(), one.slug.casefold())]
        found = found or [one for one in others if wanted in one.name.casefold()]
        if not found:
            known = ", ".join(one.name for one in others[:20]) or "nobody else"
            raise ToolFailed(f"There is no {name} here. There is {known}.", code="assistant_unknown")
        await store.change_assistant(host.id, found[0])
        # The new one has the word next, and not the one who was asked.
        host.conversation.finish_call_silently(self._call_id)
        self._capabilities.follow(found[0])
        return found[0].name


class _Notes:
    def __init__(self, user_id: int) -> None:
        self._user_id = user_id

    async def save(self, text: str) -> None:
        try:
            await notes.save(self._user_id, text)
        except VoiceAppError as error:
            raise ToolFailed(error.message, code=error.code) from error

    async def find(self, words: str) -> Sequence[KeptNote]:
        return await notes.find(self._user_id, words)

    async def delete(self, found: Sequence[KeptNote]) -> Sequence[KeptNote]:
        return await notes.delete(self._user_id, found)

    async def restore(self) -> Sequence[KeptNote]:
        try:
            return await notes.restore(self._user_id)
        except VoiceAppError as error:
            raise ToolFailed(error.message, code=error.code) from error


class _Past:
    def __init__(self, user_id: int, session_id: UUID, zone: tzinfo | None) -> None:
        self._user_id = user_id
        self._session_id = session_id
        self._zone = zone or timezone.get_default_timezone()

    async def search(self, words: str) -> Sequence[Mention]:
        found = await search.search(self._user_id, words, but=self._session_id)
        days = [one.started_at.astimezone(self._zone) for one in found]
        return [
            Mention(f"{day:%d %B %Y}", one.title, one.excerpt) for day, one in zip(days, found, strict=True)
        ]
