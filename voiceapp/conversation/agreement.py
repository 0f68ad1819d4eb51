"""What a session wants of its service, and what the service agreed to; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from voiceapp.config import AssistantConfig
from voiceapp.conversation import session_config
from voiceapp.conversation.actions import FormatsAgreed, HostServers, SendBrowser, notice
from voiceapp.mcp_servers import scrub
from voiceapp.protocol.events import Object

_GIVEN_UP = {
    "semantic_vad": (
        "semantic_vad_refused",
        "This service has no semantic turn detection; silence ends a turn instead.",
    ),
    "voice": ("voice_kept", "The service keeps its voice: it cannot change once it was heard."),
    "mcp": (
        "mcp_refused",
        "This service does not call the assistant's MCP servers; they are called from here instead.",
    ),
}


@dataclass
class Agreement:
    """The configuration of one session, as asked for and as echoed.

    ``expires_at`` is when the service ends the connection, in seconds since the epoch, where it says so.
    ``has_mcp`` is whether the service calls MCP servers itself, ``hosting`` whether that is done from here.
    ``told`` is how many functions the service knows of.
    """

    assistant: AssistantConfig
    transcription_model: str = ""
    tools: list[Object] = field(default_factory=list)
    ready: bool = False
    has_mcp: bool = True
    hosting: bool = False
    told: int = 0
    expires_at: float | None = None

    def __post_init__(self) -> None:
        self.input_format = self.assistant.input_format
        self.output_format = self.assistant.output_format
        self.turn_detection = self.assistant.turn_detection

    def wish(self) -> Object:
        """Return the ``session.update`` that asks for it."""
        self.told = len(self.tools)
        servers = self.assistant.mcp_servers if self.has_mcp else ()
        tools = [*self.tools, *(server.to_ga() for server in servers)]
        session = session_config.session_update(self.assistant, tools, self.transcription_model)
        return {"type": "session.update", "session": session}

    def news(self) -> list[Object]:
        """Return a ``session.update`` for functions that came after the wish, if there are some."""
        if not self.ready or self.told == len(self.tools):
            return []
        self.told = len(self.tools)
        return [{"type": "session.update", "session": {"type": "realtime", "tools": list(self.tools)}}]

    def host(self) -> list[HostServers]:
        """Return the wish, once, that the servers are called from here where the service calls none."""
        due = not self.has_mcp and not self.hosting and bool(self.assistant.mcp_servers)
        self.hosting |= due
        return [HostServers()] if due else []

    def opened(self, session: Object) -> None:
        """Take the service's first word, ``session.created``."""
        expires_at = session.get("expires_at")
        self.expires_at = float(expires_at) if isinstance(expires_at, int | float) and expires_at else None

    def updated(self, session: Object) -> FormatsAgreed:
        """Take what the service echoes, whatever was asked for."""
        audio: Any = session.get("audio")
        sides = audio if isinstance(audio, dict) else {}
        self.input_format = session_config.echoed_format(sides.get("input"), self.input_format)
        self.output_format = session_config.echoed_format(sides.get("output"), self.output_format)
        heard = sides.get("input")
        if isinstance(heard, dict) and isinstance(turns := heard.get("turn_detection", ""), dict | None):
            self.turn_detection = turns
        self.ready = True
        return FormatsAgreed(self.input_format, self.output_format)

    def refused(self, error: Object) -> tuple[SendBrowser, Object | None]:
        """The service refused the wish; return what the page is told, and the next wish if there is one."""
        if given_up := self.fall_back(error):
            return notice(*_GIVEN_UP[given_up], "warning"), self.wish()
        message = scrub(str(error.get("message", "")), self.assistant.mcp_servers)
        told = f"The service refused the assistant's settings: {message}"
        return notice("configuration_refused", told, "error"), None

    def fall_back(self, error: Object) -> str:
        """Give up what a service may lack; return what it was, or nothing where all is the least already.

        The service's words choose where there are two such things: ``semantic_vad`` and ``mcp``.
        """
        said = f"{error.get('param')} {error.get('message')}".lower()
        if error.get("code") == "cannot_update_voice" and self.assistant.voice:
            self.assistant = msgspec.structs.replace(self.assistant, voice="")
            return "voice"
        semantic = (self.assistant.turn_detection or {}).get("type") == "semantic_vad"
        mcp = self.has_mcp and bool(self.assistant.mcp_servers)
        about_tools = "session.tools" in said or "mcp" in said
        if semantic and not (mcp and about_tools):
            self.assistant = session_config.with_server_vad(self.assistant)
            return "semantic_vad"
        if mcp:
            self.has_mcp = False
            return "mcp"
        return ""

    def lost(self) -> None:
        """The connection is gone; the next one is asked anew."""
        self.ready = False
        self.expires_at = None
