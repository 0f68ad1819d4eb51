"""Tables: assistants, and what is kept of every session.

Only ``voiceapp.records.store`` writes the tables of sessions; the admin edits assistants.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Coalesce

from voiceapp.audio.formats import AudioFormat
from voiceapp.config import AssistantConfig, Thinking
from voiceapp.http_tools import HttpToolsConfig
from voiceapp.mcp_servers import McpServer
from voiceapp.records.api_tokens import ApiToken, TokenUsage
from voiceapp.records.clock import clock
from voiceapp.records.http_tool_sets import HttpToolSet
from voiceapp.records.inert import inert
from voiceapp.records.validation import (
    default_turn_detection,
    validate_mcp_servers,
    validate_tools,
    validate_transcription,
    validate_turn_detection,
    validate_voices,
)

__all__ = [
    "ApiToken", "Assistant", "Evaluation", "HttpToolSet", "Item", "Note", "Response", "Session", "Sessions",
    "TokenUsage", "ToolCall",
]  # fmt: skip

TITLE_LENGTH = 80
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
            tools=tuple(self.tools or ()),
            mcp_servers=msgspec.convert(self.mcp_servers or (), tuple[McpServer, ...]),
            http_tools=self._http_tools() if with_http_tools and self.pk else (),
        )

    def _http_tools(self) -> tuple[HttpToolsConfig, ...]:
        found = [tools.config() for tools in self.http_tools.all() if tools.enabled]
        return tuple(tools for tools in found if tools is not None)


class Sessions(models.QuerySet["Session"]):
    """Sessions, with what lists of them need."""

    def with_first_words(self) -> Sessions:
        """Add ``first_words``: what the user said first, or ``None``; the admin's and the page's title."""
        said = Item.objects.filter(session=models.OuterRef("pk"), role="user").exclude(generated_text="")
        return self.annotate(first_words=models.Subquery(said.order_by("id").values("generated_text")[:1]))

    def with_times_said(self) -> Sessions:
        """Add ``times_said``: how often the user said something, aloud or typed."""
        said = self._said("user").order_by().values("session").annotate(times=models.Count("pk"))
        return self.annotate(times_said=Coalesce(models.Subquery(said.values("times")), 0))

    def with_something_said(self) -> Sessions:
        """Leave out those in which neither side said anything."""
        return self.filter(models.Exists(self._said("user", "assistant")))

    @staticmethod
    def _said(*roles: str) -> models.QuerySet[Item]:
        """Return an outer session's messages; noise that turned out to hold no words is none."""
        messages = Item.objects.filter(session=models.OuterRef("pk"), type="message", role__in=roles)
        return messages.exclude(generated_text="", transcript_status="completed")


class Session(models.Model):
    """One conversation of one user. ``ended_at`` is empty while it lives."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="voice_sessions"
    )
    assistant = models.ForeignKey(Assistant, null=True, on_delete=models.SET_NULL, related_name="sessions")
    configuration = models.JSONField(help_text="The assistant as it was when the session began.")
    upstream = models.CharField("service", max_length=32, db_index=True)
    process = models.CharField(max_length=36, help_text="The server process that runs or ran it.")
    started_at = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True, db_index=True)
    end_reason = models.CharField(max_length=64, blank=True, db_index=True)
    expected = models.BooleanField(null=True, help_text="Whether it ended as the user meant it to.")
    duration_ms = models.PositiveBigIntegerField(default=0)
    item_count = models.PositiveIntegerField(default=0)
    recording = models.CharField(max_length=255, blank=True, help_text="File, relative to the data folder.")
    heading = models.CharField(
        max_length=TITLE_LENGTH, blank=True, help_text="A title, written when the session was over."
    )
    summary = models.TextField(blank=True)
    continued_from = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.SET_NULL,
        related_name="continuations",
        help_text="The session whose conversation went on in this one.",
    )

    objects = Sessions.as_manager()

    class Meta:
        ordering = ("-started_at", "id")

    def __str__(self) -> str:
        return f"{self.assistant_name}, {self.started_at:%Y-%m-%d %H:%M}"

    @property
    def title(self) -> str:
        """The heading; until there is one, what the user said first, cut short, or the assistant's name.

        Needs ``with_first_words``; without it the title is the heading or the assistant's name.
        """
        words = " ".join(inert(self.heading).split()) or " ".join(
            inert(getattr(self, "first_words", None) or "").split()
        )
        if not words:
            return self.assistant_name
        return words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1].rstrip()}…"

    @property
    def duration(self) -> str:
        """How long it was, as ``m:ss``; nothing while it lives."""
        return clock(self.duration_ms) if self.ended_at else ""

    @property
    def assistant_name(self) -> str:
        """The assistant's name when the session began, inert but for markup."""
        return inert(str(self.configuration.get("name", ""))) if isinstance(self.configuration, dict) else ""

    def assistant_config(self) -> AssistantConfig:
        """Return the configuration that the session ran with."""
        return msgspec.convert(self.configuration, AssistantConfig)


class Item(models.Model):
    """One item of the conversation; ``id`` grows in the order in which items were first seen."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="items")
    item_id = models.CharField(max_length=255)
    previous_item_id = models.CharField(max_length=255, null=True)
    type = models.CharField(max_length=64)
    role = models.CharField(max_length=32, blank=True)
    status = models.CharField(max_length=32, blank=True)
    response_id = models.CharField(max_length=255, blank=True)
    generated_text = models.TextField(blank=True)
    heard_text = models.TextField(null=True)
    cut_ms = models.BigIntegerField(null=True)
    transcript_status = models.CharField(max_length=16, blank=True)
    modality = models.CharField(max_length=16, blank=True)
    started_ms = models.BigIntegerField(default=0)
    ended_ms = models.BigIntegerField(default=0)
    raw: models.JSONField[dict[str, Any]] = models.JSONField(default=dict)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("session", "item_id"), name="one_row_per_item"),)
        ordering = ("id",)

    def __str__(self) -> str:
        return self.item_id


class Response(models.Model):
    """One answer of the service: how it ended, what it cost, how fast it came."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="responses")
    response_id = models.CharField(max_length=255)
    status = models.CharField(max_length=32, blank=True, db_index=True)
    status_details: models.JSONField[dict[str, Any] | None] = models.JSONField(null=True)
    usage: models.JSONField[dict[str, Any] | None] = models.JSONField(null=True)
    latency_ms = models.BigIntegerField(
        null=True, help_text="From the end of speech to the first audio sent."
    )
    metadata: models.JSONField[dict[str, Any] | None] = models.JSONField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("session", "response_id"), name="one_row_per_response"),
        )
        ordering = ("id",)

    def __str__(self) -> str:
        return self.response_id


class ToolCall(models.Model):
    """One call of a tool, with its arguments as the model wrote them."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="tool_calls")
    call_id = models.CharField(max_length=255)
    item_id = models.CharField(max_length=255, blank=True)
    name = models.CharField(max_length=255, db_index=True)
    arguments = models.TextField(blank=True)
    output = models.TextField(blank=True)
    status = models.CharField(max_length=32, blank=True)
    started_ms = models.BigIntegerField(default=0)
    ended_ms = models.BigIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("session", "call_id"), name="one_row_per_tool_call"),)
        ordering = ("id",)

    def __str__(self) -> str:
        return self.call_id


class Note(models.Model):
    """Something that a user asked to be kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="voice_notes")
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return inert(self.text[:TITLE_LENGTH])


class Evaluation(models.Model):
    """How an evaluator judged a session, and by what."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="evaluations")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    scores: models.JSONField[list[dict[str, Any]]] = models.JSONField(
        help_text="For each criterion: criterion, score from 0 to 10, reason."
    )
    overall = models.PositiveSmallIntegerField()
    comment = models.TextField(blank=True)
    model = models.CharField(max_length=200, blank=True)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.overall} of 10"
