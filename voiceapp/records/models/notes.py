"""The table of users' notes."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from voiceapp.records.display import TITLE_LENGTH, inert


class Note(models.Model):
    """Something that a user asked to be kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="voice_notes")
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(
        null=True, db_index=True, help_text="When it was deleted; for a day its user can bring it back."
    )

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return inert(self.text[:TITLE_LENGTH])
