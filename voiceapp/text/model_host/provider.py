"""Thinking by a model that a user connected to ``/ws/model-host/``."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

from voiceapp.errors import ModelHostAmbiguous, TextEngineUnavailable, TextRequestError
from voiceapp.text.model_host import responses_api
from voiceapp.text.model_host.link import HostLink
from voiceapp.text.model_host.messages import StreamMetadata
from voiceapp.text.provider import Delta, ReplyRequest, Returned
from voiceapp.types import Part

MAX_HOSTS_PER_USER: Final = 8

# Said by the service behind the host, and sent back to it within the same turn.
_TURN_STATE: Final = "x-codex-turn-state"


class ModelHosts:
    """The hosts that users have connected to this process."""

    def __init__(self) -> None:
        self._hosts: dict[int, set[HostLink]] = {}

    def connect(self, user_id: int, link: HostLink) -> None:
        """Offer a host for a user's threads; raise ``TextEngineError`` (``too_many_model_hosts``)."""
        hosts = self._hosts.setdefault(user_id, set())
        if len(hosts) >= MAX_HOSTS_PER_USER:
            sentence = f"A user may connect {MAX_HOSTS_PER_USER} model hosts at most."
            raise TextRequestError(sentence, code="too_many_model_hosts")
        hosts.add(link)

    def disconnect(self, user_id: int, link: HostLink) -> None:
        """The host is gone; what it was asked for fails."""
        hosts = self._hosts.get(user_id, set())
        hosts.discard(link)
        if not hosts:
            self._hosts.pop(user_id, None)
        link.close()

    def find(self, user_id: int, thread_id: str) -> HostLink:
        """Return the one host that serves a thread.

        Raises ``TextEngineError``: ``model_host_absent`` where there is none, ``model_host_ambiguous`` where
        there are several: nobody could say which one the user means.
        """
        hosts = self._hosts.get(user_id, ())
        serving = [host for host in hosts if host.ready and host.thread_id in ("", thread_id)]
        # One that was connected for this very thread goes before one that serves all.
        chosen = [host for host in serving if host.thread_id] or serving
        if not chosen:
            sentence = "No model host is connected. Start one: manage.py model-host --endpoint URL"
            raise TextEngineUnavailable(sentence, code="model_host_absent")
        if len(chosen) > 1:
            sentence = "More than one model host is connected for this conversation. Stop all but one."
            raise ModelHostAmbiguous(sentence, code="model_host_ambiguous")
        return chosen[0]


model_hosts: Final = Part[ModelHosts]("table of model hosts")


class ModelHostProvider:
    """A ``TextProvider`` that asks a user's own host; one for each thread, which is a voice session.

    ``idle_s``: how long the host may be silent within a reply.
    """

    def __init__(self, user_id: int, thread_id: str, idle_s: float, model: str = "") -> None:
        self._user_id = user_id
        self._thread_id = thread_id
        self._idle_s = idle_s
        self._model = model
        self._turn_id = ""
        self._asked = 0
        self._turn_state = ""
        self._unopened = False

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        """Stream the model's reply; raise ``TextEngineError``, see ``host_for`` and ``HostLink.ask``."""
        host = model_hosts().find(self._user_id, self._thread_id)
        turn_id, request_id = self._next_ids(request)
        headers = {_TURN_STATE: self._turn_state} if self._turn_state else {}
        fields = responses_api.request_fields(request, self._model, headers)
        offered = () if request.tool_choice == "none" else [tool.name for tool in request.tools]
        reader = responses_api.EventReader(offered, unopened=self._unopened)
        notifications = host.ask((self._thread_id, turn_id, request_id), fields, self._idle_s)
        async with aclosing(notifications):
            async for notification in notifications:
                if isinstance(notification, StreamMetadata):
                    self._note(turn_id, notification)
                    continue
                event = getattr(notification, "event", None)
                for delta in reader.feed(event if isinstance(event, dict) else {}):
                    yield delta
                if reader.done:
                    self._unopened = reader.was_unopened
                    return

    async def aclose(self) -> None:
        """Nothing is open: the connection is the host's."""

    def _next_ids(self, request: ReplyRequest) -> tuple[str, str]:
        """Return (turn id, request id): what follows a tool's output belongs to the turn that called it."""
        if not (self._turn_id and request.history and isinstance(request.history[-1], Returned)):
            self._turn_id, self._asked, self._turn_state = f"turn_{secrets.token_hex(12)}", 0, ""
        self._asked += 1
        return self._turn_id, f"{self._turn_id}-{self._asked}"

    def _note(self, turn_id: str, notification: StreamMetadata) -> None:
        if turn_id != self._turn_id:
            # The turn is over; a speculative reply may outlive it.
            return
        for name, value in notification.metadata.items():
            if name.lower() == _TURN_STATE:
                self._turn_state = value
