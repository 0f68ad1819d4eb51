"""What an assistant is: who thinks, what it is told, how audio is exchanged; pure."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

from voiceapp.assistants.http_tools import HttpToolsConfig
from voiceapp.assistants.mcp_servers import McpServer
from voiceapp.audio.formats import AudioFormat

DEFAULT_TOOL_ROUNDS: Final = 8
"""Answers in a row that may call tools: more than tasks take that end, and few enough to wait for."""
MAX_TOOL_ROUNDS: Final = 64
"""The most that an assistant may be allowed."""


class Thinking(Enum):
    """Who thinks for the embedded engine; ``AS_SET`` leaves it, and which service speaks, to the settings."""

    AS_SET = ""
    EMBEDDED = "embedded"
    CHAT = "chat"
    MODEL_HOST = "model-host"


class AssistantConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One assistant as a session runs with it; kept with the session.

    ``turn_detection`` and ``transcription`` are the GA objects ``session.audio.input.turn_detection``
    and ``.transcription``; ``None`` turns each off (push-to-talk; no user captions). ``voices`` are
    offered on the page beside ``voice``. ``max_tool_rounds``: how many answers in a row may call tools.
    """

    slug: str
    name: str
    thinking: Thinking = Thinking.AS_SET
    instructions: str = ""
    voice: str = ""
    voices: tuple[str, ...] = ()
    input_format: AudioFormat = AudioFormat.PCM16
    output_format: AudioFormat = AudioFormat.PCM16
    turn_detection: dict[str, Any] | None = msgspec.field(default_factory=lambda: {"type": "server_vad"})
    transcription: dict[str, Any] | None = msgspec.field(default_factory=dict)
    max_output_tokens: int | None = None
    max_tool_rounds: int = DEFAULT_TOOL_ROUNDS
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    http_tools: tuple[HttpToolsConfig, ...] = ()

    @property
    def offered_voices(self) -> tuple[str, ...]:
        """Voices that a user may choose from, the assistant's own first; empty where there is no choice."""
        if not self.voices:
            return ()
        own = (self.voice,) if self.voice else ()
        return own + tuple(voice for voice in self.voices if voice not in own)

    def with_secrets_of(self, known: AssistantConfig) -> AssistantConfig:
        """Return a kept assistant as it can run again: its servers and HTTP tools are those known by now.

        One that is no longer known is left out: its secrets were not kept.
        """
        servers = {server.server_label: server for server in known.mcp_servers}
        again = tuple(servers[kept.server_label] for kept in self.mcp_servers if kept.server_label in servers)
        sets = {tools.slug: tools for tools in known.http_tools}
        tools_again = tuple(sets[kept.slug] for kept in self.http_tools if kept.slug in sets)
        return msgspec.structs.replace(self, mcp_servers=again, http_tools=tools_again)

    def without_secrets(self) -> AssistantConfig:
        """Return the assistant as it may be kept with its sessions."""
        servers = tuple(server.without_secrets() for server in self.mcp_servers)
        http_tools = tuple(tools.without_secrets() for tools in self.http_tools)
        return msgspec.structs.replace(self, mcp_servers=servers, http_tools=http_tools)
