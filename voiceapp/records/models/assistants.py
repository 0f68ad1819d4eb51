"""The table of assistants."""

from __future__ import annotations

import msgspec
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from voiceapp.assistants.assistant import DEFAULT_TOOL_ROUNDS, MAX_TOOL_ROUNDS, AssistantConfig, Thinking
from voiceapp.assistants.http_tools import HttpToolsConfig
from voiceapp.assistants.mcp_servers import McpServer
from voiceapp.audio.formats import AudioFormat
from voiceapp.records.models.http_tools import HttpToolSet
from voiceapp.records.validation import (
    default_turn_detection,
    validate_mcp_servers,
    validate_tools,
    validate_transcription,
    validate_turn_detection,
    validate_voices,
)

FORMAT_CHOICES = [
    (AudioFormat.PCM16.value, "PCM, 16 bit, 24 kHz"),
    (AudioFormat.PCMU.value, "G.711 μ-law, 8 kHz"),
    (AudioFormat.PCMA.value, "G.711 A-law, 8 kHz"),
]


THINKING_CHOICES = [
    ("", "As the settings say"),
    (Thinking.EMBEDDED.value, "The built-in brain"),
    (Thinking.CHAT.value, "The chat service that the settings name"),
    (Thinking.MODEL_HOST.value, "The model that the user connected"),
]


class Assistant(models.Model):
    """Somebody to talk to: what the service is told, and how audio is exchanged."""

    slug = models.SlugField(max_length=64, unique=True, help_text="Short name in addresses and scripts.")
    name = models.CharField(max_length=100)
    enabled = models.BooleanField(default=True, help_text="Offered on the page.")
    position = models.IntegerField(
        default=0, help_text="Order on the page, lowest first; the first is chosen where none is named."
    )
    instructions = models.TextField(
        blank=True, help_text="What the model is told before the conversation. Never shown to users."
    )
    voice = models.CharField(max_length=100, blank=True, help_text="Empty: the service's own choice.")
    voices = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_voices],
        help_text='Voices that users may choose instead, such as ["alloy", "verse"]. Empty: no choice.',
    )
    thinking = models.CharField(
        max_length=16,
        blank=True,
        choices=THINKING_CHOICES,
        default="",
        help_text="Who thinks. Any but the first speaks with the embedded engine's voice.",
    )
    input_format = models.CharField(
        "microphone format", max_length=16, choices=FORMAT_CHOICES, default=AudioFormat.PCM16.value
    )
    output_format = models.CharField(
        "speaker format", max_length=16, choices=FORMAT_CHOICES, default=AudioFormat.PCM16.value
    )
    turn_detection = models.JSONField(
        null=True,
        blank=True,
        default=default_turn_detection,
        validators=[validate_turn_detection],
        help_text='How turns are found, such as {"type": "server_vad", "silence_duration_ms": 500}. '
        "Empty: the user holds a button to talk.",
    )
    transcription = models.JSONField(
        null=True,
        blank=True,
        default=dict,
        validators=[validate_transcription],
        help_text='How the user\'s speech becomes captions, such as {"language": "en"}. {}: as the service '
        "does it. Empty: no captions of the user.",
    )
    max_output_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(4096)],
        help_text="Longest answer, 1 to 4096. Empty: no limit.",
    )
    max_tool_rounds = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_TOOL_ROUNDS)],
        help_text=f"Answers in a row that may call tools, 1 to {MAX_TOOL_ROUNDS}; then it has to answer "
        f"without. Empty: {DEFAULT_TOOL_ROUNDS}.",
    )
    tools = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_tools],
        help_text='Names of tools, such as ["current_time", "calculate"].',
    )
    mcp_servers = models.JSONField(
        "MCP servers",
        default=list,
        blank=True,
        validators=[validate_mcp_servers],
        help_text='Servers whose tools the assistant may use, such as [{"server_label": "shop", '
        '"server_url": "https://shop.example/mcp"}]. Each may have "allowed_tools" (a list of names), '
        '"require_approval" ("always", unless it says "never" or {"never": {"tool_names": [...]}}), '
        '"authorization" (a token) and "headers". Tokens and headers are sent to the voice service, which '
        "calls the server; users never see them.",
    )
    http_tools = models.ManyToManyField(
        HttpToolSet,
        blank=True,
        related_name="assistants",
        verbose_name="HTTP tools",
        help_text="Services whose operations the assistant may call.",
    )

    class Meta:
        ordering = ("position", "name", "id")

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse JSON that is empty but not null: the service would not take it."""
        self.tools, self.mcp_servers = self.tools or [], self.mcp_servers or []
        self.voices = self.voices or []
        if self.turn_detection in ("", {}, []):
            raise ValidationError({"turn_detection": "Give a type, or null for push-to-talk."})

    def config(self, *, with_http_tools: bool = True) -> AssistantConfig:
        """Return the assistant as a session runs with it; its HTTP tools take reading their documents."""
        return AssistantConfig(
            slug=self.slug,
            name=self.name,
            thinking=Thinking(self.thinking),
            instructions=self.instructions,
            voice=self.voice,
            voices=tuple(self.voices or ()),
            input_format=AudioFormat(self.input_format),
            output_format=AudioFormat(self.output_format),
            turn_detection=self.turn_detection,
            transcription=self.transcription,
            max_output_tokens=self.max_output_tokens,
            max_tool_rounds=self.max_tool_rounds or DEFAULT_TOOL_ROUNDS,
            tools=tuple(self.tools or ()),
            mcp_servers=msgspec.convert(self.mcp_servers or (), tuple[McpServer, ...]),
            http_tools=self._http_tools() if with_http_tools and self.pk else (),
        )

    def _http_tools(self) -> tuple[HttpToolsConfig, ...]:
        found = [tools.config() for tools in self.http_tools.all() if tools.enabled]
        return tuple(tools for tools in found if tools is not None)
