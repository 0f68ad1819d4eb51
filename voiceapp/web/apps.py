"""The Django app of the pages and commands."""

from __future__ import annotations

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Registers the system checks of the settings."""

    name = "voiceapp.web"
    label = "web"

    def ready(self) -> None:
        """Import what registers itself."""
        from voiceapp.web import checks  # noqa: F401
