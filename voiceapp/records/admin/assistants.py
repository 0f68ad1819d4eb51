"""The admin's pages for assistants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db.models import JSONField, QuerySet
from django.http import HttpRequest

from voiceapp.assistants.http_tools import MAX_HTTP_TOOLS, MAX_SETS
from voiceapp.records.admin.fields import JsonField, ToolChoice
from voiceapp.records.display import inert
from voiceapp.records.models import Assistant, HttpToolSet

if TYPE_CHECKING:
    _AssistantAdmin = admin.ModelAdmin[Assistant]
    _ModelForm = forms.ModelForm[Assistant]
else:
    _AssistantAdmin = admin.ModelAdmin
    _ModelForm = forms.ModelForm


class _AssistantForm(_ModelForm):
    """Fields no larger than what goes into them."""

    class Meta:
        field_classes = {
            field.name: JsonField for field in Assistant._meta.fields if isinstance(field, JSONField)
        } | {"tools": ToolChoice}
        help_texts = {"tools": "What it may use while it talks."}
        widgets = {
            name: forms.Textarea(attrs={"rows": rows, "cols": 90})
            for name, rows in (("instructions", 10), ("mcp_servers", 4), ("turn_detection", 3),
                               ("transcription", 1), ("voices", 1))
        } | {"http_tools": forms.CheckboxSelectMultiple}  # fmt: skip

    def clean_http_tools(self) -> QuerySet[HttpToolSet]:
        """Refuse more tools than a service takes."""
        chosen: QuerySet[HttpToolSet] = self.cleaned_data["http_tools"]
        count = sum(tools.count() for tools in chosen)
        if len(chosen) > MAX_SETS or count > MAX_HTTP_TOOLS:
            sentence = f"An assistant may have {MAX_SETS} of these, with {MAX_HTTP_TOOLS} operations in all"
            raise forms.ValidationError(f"{sentence}: these have {count}.")
        return chosen


@admin.register(Assistant)
class AssistantAdmin(_AssistantAdmin):
    """Assistants; a change counts for sessions that begin after it."""

    form = _AssistantForm
    list_display = ("name", "slug", "enabled", "position", "input_format", "output_format", "turns")
    list_filter = ("enabled", "input_format", "output_format")
    search_fields = ("name", "slug", "instructions")
    prepopulated_fields = {"slug": ("name",)}
    fieldsets = (
        (None, {"fields": ("name", "slug", "enabled", "position")}),
        (
            "Conversation",
            {
                "fields": (
                    "instructions",
                    "thinking",
                    "voice",
                    "voices",
                    "tools",
                    "mcp_servers",
                    "http_tools",
                    "max_tool_rounds",
                    "max_output_tokens",
                )
            },
        ),
        ("Audio", {"fields": ("input_format", "output_format", "turn_detection", "transcription")}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Assistant | None = None) -> Any:
        """Show those who may only look no secrets."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (title, {**options, "fields": [
                "servers" if name == "mcp_servers" else name for name in options["fields"]
            ]})
            for title, options in fieldsets
        ]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Assistant | None = None) -> Any:
        """Name what stands in for the servers where they may not be changed."""
        return ("servers",) if obj is not None and not self.has_change_permission(request, obj) else ()

    @admin.display(description="MCP servers")
    def servers(self, assistant: Assistant) -> str:
        """Show the servers without their secrets."""
        kept = assistant.config(with_http_tools=False).without_secrets().mcp_servers
        return inert(json.dumps([server.to_ga() for server in kept], indent=2, ensure_ascii=False))

    @admin.display(description="turns")
    def turns(self, assistant: Assistant) -> str:
        """Say how turns are found."""
        detection = assistant.turn_detection
        return str(detection.get("type")) if isinstance(detection, dict) else "push to talk"
