"""The tables of what is kept of every session; only ``voiceapp.records.store`` writes them."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.language.zones import MAX_ZONE_CHARS
from voiceapp.records.display import TITLE_LENGTH, clock, inert
from voiceapp.records.models.assistants import Assistant


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
    end_code = models.CharField(
        max_length=64, blank=True, db_index=True, help_text="The cause of its end, as a stable word."
    )
    end_message = models.CharField(
        max_length=500, blank=True, help_text="The sentence that its user was told at its end."
    )
    expected = models.BooleanField(null=True, help_text="Whether it ended as the user meant it to.")
    duration_ms = models.PositiveBigIntegerField(default=0)
    item_count = models.PositiveIntegerField(default=0)
    recording = models.CharField(max_length=255, blank=True, help_text="File, relative to the data folder.")
    time_zone = models.CharField(
        max_length=MAX_ZONE_CHARS, blank=True, help_text="The user's, by its IANA name; empty: not known."
    )
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
    speaker = models.CharField(
        max_length=100, blank=True, help_text="The assistant whose item it is; empty: the session's."
    )

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
