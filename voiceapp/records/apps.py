"""The Django app of the records."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class RecordsConfig(AppConfig):
    """Sees to it that there is always an assistant to talk to."""

    name = "voiceapp.records"
    label = "records"
    verbose_name = "Conversations"

    def ready(self) -> None:
        """Connect the seeding of the first assistant."""
        from voiceapp.records.setup.seeding import seed_assistant

        post_migrate.connect(seed_assistant, sender=self)
