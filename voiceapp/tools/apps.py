"""The Django app of the tools."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ToolsConfig(AppConfig):
    """Finds the tools of this and of other apps."""

    name = "voiceapp.tools"
    label = "tools"

    def ready(self) -> None:
        """Import the product's own tools, and the module ``voice_tools`` of every app."""
        from voiceapp.tools.shipped import clock_and_sums, session, units  # noqa: F401

        autodiscover_modules("voice_tools")
