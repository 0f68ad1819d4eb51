"""What a session wants of its service, and what the service agreed to; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.assistants.mcp_servers import scrub
from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation.actions import (
    Action,
    FormatsAgreed,
    HostServers,
    SendBrowser,
    notice,
)
from voiceapp.errors import AudioFormatError
from voiceapp.protocol.events import SessionCreated, SessionUpdated
from voiceapp.protocol.page import SessionOutputChanged
from voiceapp.types import JsonObject

MAX_EPOCH_S = 1e11
"""No time of day is later, in seconds since the epoch; a service may say anything."""

OPTIONAL: Final = {
    "max_output_tokens": ("max_output_tokens",),
    "transcription": ("audio", "input", "transcription"),
    "turn_detection": ("audio", "input", "turn_detection"),
    "output_modalities": ("output_modalities",),
    "voice": ("audio", "output", "voice"),
}
"""Settings that a service may lack, and where they stand: without them it does as it is used to."""

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
class OutputChoice:
    """Whether answers are spoken: as the page wants it, as it was asked for, and as the service does."""

    wanted: bool = True
    asked: bool = True
    agreed: bool = True


@dataclass
class Negotiation:
    """The configuration of one session, as asked for and as echoed.

    ``expires_at`` is when the service ends the connection, in seconds since the epoch, where it says so.
    ``has_mcp`` is whether the service calls MCP servers itself, ``hosting`` whether that is done from here.
    ``functions_sent`` is how many functions the service knows of.
    """

    assistant: AssistantConfig
    transcription_model: str = ""
    tools: list[JsonObject] = field(default_factory=list)
    has_mcp: bool = True
    hosting: bool = False
    functions_sent: int = 0
    left_out: set[str] = field(default_factory=set)
    """Functions that the service refused by name."""
    settings_left_out: set[str] = field(default_factory=set)
    sent_names: list[str] | None = None
    """The functions of the last update, in their order."""
    expires_at: float | None = None
    spoken: OutputChoice = field(default_factory=OutputChoice)
    refusal: str = ""
    """Why the service takes the settings neither as they are nor with less, in a sentence."""

    def __post_init__(self) -> None:
        self.input_format = self.assistant.input_format
        self.output_format = self.assistant.output_format
        self.turn_detection = self.assistant.turn_detection

    @property
    def answers_turns(self) -> bool:
        """Whether the service answers what is spoken of its own accord."""
        return self.turn_detection is not None and self.turn_detection.get("create_response") is not False

    def session_update(self) -> JsonObject:
        """Return the ``session.update`` that asks for it."""
        self.functions_sent = len(self.tools)
        servers = self.assistant.mcp_servers if self.has_mcp else ()
        tools = [*self.functions(), *(server.to_ga() for server in servers)]
        session = session_fields(self.assistant, tools, self.transcription_model)
        session["output_modalities"] = self._modalities()
        for setting in self.settings_left_out:
            _remove(session, OPTIONAL[setting])
        return {"type": "session.update", "session": session}

    def functions(self) -> list[JsonObject]:
        """Return the functions that the service has not refused, to be sent."""
        functions = [tool for tool in self.tools if tool["name"] not in self.left_out]
        self.sent_names = [str(tool["name"]) for tool in functions]
        return functions

    def tools_update(self) -> list[JsonObject]:
        """Return a ``session.update`` for functions that came after the first one, if there are some."""
        if self.functions_sent == len(self.tools):
            return []
        self.functions_sent = len(self.tools)
        return [{"type": "session.update", "session": {"type": "realtime", "tools": self.functions()}}]

    def output_update(self) -> list[JsonObject]:
        """Return a ``session.update`` for how answers come, where it was not asked for like that."""
        if self.spoken.wanted is self.spoken.asked or "output_modalities" in self.settings_left_out:
            return []
        session = {"type": "realtime", "output_modalities": self._modalities()}
        return [{"type": "session.update", "session": session}]

    def _modalities(self) -> list[str]:
        self.spoken.asked = self.spoken.wanted
        return ["audio" if self.spoken.asked else "text"]

    def output_message(self) -> SendBrowser:
        """Return what the page is told of how answers come."""
        return SendBrowser(SessionOutputChanged(audio=self.spoken.agreed))

    def output_agreed(self, session: JsonObject) -> list[Action]:
        """Take from the service's echo how it answers; return what the page is told where that changed."""
        echoed = session.get("output_modalities")
        before, left_out = self.spoken.agreed, "output_modalities" in self.settings_left_out
        if isinstance(echoed, list):
            self.spoken.agreed = "audio" in echoed
        elif not left_out:
            self.spoken.agreed = self.spoken.asked
        return [] if self.spoken.agreed is before else [self.output_message()]

    def output_refused(self) -> list[Action]:
        """The service answers in no other way than it does; it is not asked again."""
        self.settings_left_out.add("output_modalities")
        sentence = "This service cannot answer in writing: its answers are spoken, and their words are shown."
        return [notice("output_refused", sentence, "warning"), self.output_message()]

    def host(self) -> list[HostServers]:
        """Ask, once, that the servers be called from here where the service calls none."""
        due = not self.has_mcp and not self.hosting and bool(self.assistant.mcp_servers)
        self.hosting |= due
        return [HostServers()] if due else []

    def session_created(self, session: JsonObject) -> None:
        """Take the service's first word, ``session.created``."""
        expires_at = session.get("expires_at")
        self.expires_at = None
        if isinstance(expires_at, int | float) and 0 < expires_at < MAX_EPOCH_S:
            self.expires_at = float(expires_at)

    def session_updated(self, session: JsonObject) -> FormatsAgreed:
        """Take what the service echoes, whatever was asked for."""
        audio: Any = session.get("audio")
        sides = audio if isinstance(audio, dict) else {}
        try:
            self.input_format = echoed_format(sides.get("input"), self.input_format)
            self.output_format = echoed_format(sides.get("output"), self.output_format)
        except AudioFormatError as error:
            self.refusal = f"The service uses a format of audio that cannot be played: {error.message}"
        heard = sides.get("input")
        if isinstance(heard, dict) and isinstance(turns := heard.get("turn_detection", ""), dict | None):
            self.turn_detection = turns
        return FormatsAgreed(self.input_format, self.output_format)

    def refused(self, error: JsonObject) -> tuple[SendBrowser, JsonObject | None]:
        """The settings were refused; return a notice, and the next ``session.update`` if there is one."""
        message = scrub(str(error.get("message", "")), self.assistant.mcp_servers)
        if function := self._refused_function(error):
            self.left_out.add(function)
            sentence = f"This service does not take the tool {function}, so it is left out: {message}"
            return notice("tool_refused", sentence, "warning"), self.session_update()
        if given_up := self.fall_back(error):
            return notice(*_GIVEN_UP[given_up], "warning"), self.session_update()
        if setting := self._refused_setting(error):
            self.settings_left_out.add(setting)
            sentence = f"This service does not take “{setting}”, so it is left out: {message}"
            return notice("setting_refused", sentence, "warning"), self.session_update()
        sentence = f"The service refused the assistant's settings: {message}"
        self.refusal = sentence
        return notice("configuration_refused", sentence, "error"), None

    def fall_back(self, error: JsonObject) -> str:
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
            self.assistant = with_server_vad(self.assistant)
            return "semantic_vad"
        if mcp:
            self.has_mcp = False
            return "mcp"
        return ""

    def _refused_function(self, error: JsonObject) -> str:
        """Return the function that a refusal is about, by its place or its name; nothing if it is of none."""
        sent = [str(tool["name"]) for tool in self.tools] if self.sent_names is None else self.sent_names
        names = [name for name in sent if name not in self.left_out]
        place = re.search(r"\btools\[(\d+)\]|\btools\.(\d+)\b", str(error.get("param")))
        if place:
            index = int(place[1] or place[2])
            return sent[index] if index < len(sent) else ""
        if "tool" not in f"{error.get('param')} {error.get('code')} {error.get('message')}".lower():
            return ""
        named = set(re.findall(r"[\w-]+", str(error.get("message"))))
        return next((name for name in names if name in named), "")

    def _refused_setting(self, error: JsonObject) -> str:
        """Return the setting that a refusal names and that a session can do without."""
        param = str(error.get("param") or "").lower()
        for setting in OPTIONAL:
            # The preview has other names for two of them.
            preview = {"max_output_tokens": "max_response_output_tokens", "output_modalities": "modalities"}
            spellings = (setting, preview.get(setting, setting))
            if setting not in self.settings_left_out and any(one in param for one in spellings):
                return setting
        return ""

    def connection_lost(self) -> None:
        """The connection is gone; the next one is asked anew."""
        self.refusal = ""
        self.expires_at = None


def session_fields(
    assistant: AssistantConfig, tools: list[JsonObject], transcription_model: str
) -> JsonObject:
    """Return the GA ``session`` of the first ``session.update``."""
    transcription = assistant.transcription
    if transcription is not None and transcription_model:
        transcription = {"model": transcription_model, **transcription}
    output: JsonObject = {"format": assistant.output_format.to_ga()}
    if assistant.voice:
        output["voice"] = assistant.voice
    session: JsonObject = {
        "type": "realtime",
        "output_modalities": ["audio"],
        "instructions": assistant.instructions,
        "audio": {
            "input": {
                "format": assistant.input_format.to_ga(),
                "transcription": transcription or None,
                "turn_detection": assistant.turn_detection,
            },
            "output": output,
        },
        "tools": tools,
    }
    if assistant.max_output_tokens is not None:
        session["max_output_tokens"] = assistant.max_output_tokens
    return session


def _remove(fields: JsonObject, path: tuple[str, ...]) -> None:
    *folders, name = path
    for folder in folders:
        fields = fields[folder]
    if name != "turn_detection" or fields.get(name) is not None:
        # Where the user says when a turn is over, the service must not.
        fields.pop(name, None)


def with_server_vad(assistant: AssistantConfig) -> AssistantConfig:
    """Return the same assistant with silence as the end of a turn."""
    kept = {
        name: value
        for name, value in (assistant.turn_detection or {}).items()
        if name in ("create_response", "interrupt_response")
    }
    return msgspec.structs.replace(assistant, turn_detection={"type": "server_vad", **kept})


def without_instructions(event: SessionCreated | SessionUpdated) -> SessionCreated | SessionUpdated:
    """Return a session event without the operator's text, which is not the page's business."""
    hidden = {"instructions", "tools", "prompt"}
    session = {name: value for name, value in event.session.items() if name not in hidden}
    return msgspec.structs.replace(event, session=session)


def echoed_format(side: Any, wanted: AudioFormat) -> AudioFormat:
    """Return the format that the service says it uses, or the wanted one where it says nothing.

    Raises ``AudioFormatError`` where it says one that is not known here.
    """
    if not isinstance(side, dict) or side.get("format") is None:
        return wanted
    return AudioFormat.parse(side["format"])
