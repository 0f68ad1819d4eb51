"""The admin: assistants to edit, sessions to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import JSONField, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html

from voiceapp.http_tools import MAX_HTTP_TOOLS, MAX_SETS
from voiceapp.records import (
    http_tool_admin,  # noqa: F401 - registers its page
    note_admin,  # noqa: F401 - registers its page
    token_admin,  # noqa: F401 - registers its pages
)
from voiceapp.records.clock import clock
from voiceapp.records.http_tool_sets import HttpToolSet
from voiceapp.records.inert import inert, inert_fields
from voiceapp.records.json_field import JsonField
from voiceapp.records.models import Assistant, Evaluation, Response, Session
from voiceapp.records.tool_choice import ToolChoice
from voiceapp.records.transcript import lines
from voiceapp.records.usage import totals

if TYPE_CHECKING:
    _AssistantAdmin = admin.ModelAdmin[Assistant]
    _SessionAdmin = admin.ModelAdmin[Session]
    _ModelForm = forms.ModelForm[Assistant]
else:
    _AssistantAdmin = _SessionAdmin = admin.ModelAdmin
    _ModelForm = forms.ModelForm

admin.site.site_header = "voiceapp"
admin.site.site_title = "voiceapp"
# A few tables need no second menu, and the list of sessions needs its room.
admin.site.enable_nav_sidebar = False
admin.site.index_title = "Assistants, sessions, tokens and users"


CRITERIA = (
    "Did the assistant understand what the user wanted?\n"
    "Was what it said right, as far as the conversation shows?\n"
    "Were its answers short and natural to listen to?\n"
    "Did the user get what they came for?"
)
"""What the evaluator's form begins with."""


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
            told = f"An assistant may have {MAX_SETS} of these, with {MAX_HTTP_TOOLS} operations in all"
            raise forms.ValidationError(f"{told}: these have {count}.")
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


class _Ending(admin.SimpleListFilter):
    """How sessions ended: still live, as meant, or not as meant."""

    title = "ending"
    parameter_name = "ending"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("live", "Live"), ("expected", "As meant"), ("unexpected", "Not as meant")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        if self.value() == "live":
            return queryset.filter(ended_at=None)
        if self.value() in ("expected", "unexpected"):
            return queryset.filter(ended_at__isnull=False, expected=self.value() == "expected")
        return queryset


class _AnswerStatus(admin.AllValuesFieldListFilter):
    """Sessions with an answer that ended so; the field's own name would say only "status"."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "an answer's status"


@admin.register(Session)
class SessionAdmin(_SessionAdmin):
    """Sessions, read-only: a list to search, and each as transcript, recording and usage."""

    list_display = ("words", "user", "who", "upstream", "started", "length", "items", "ending", "audio")
    list_display_links = ("words",)
    list_filter = (_Ending, "upstream", "assistant", "end_reason", ("responses__status", _AnswerStatus))
    list_select_related = ("user", "assistant")
    list_per_page = 50
    date_hierarchy = "started_at"
    search_fields = ("items__generated_text", "user__username", "tool_calls__name")
    search_help_text = "Words of the conversation, a user's name, a tool's name or a session's id."
    show_full_result_count = False

    class Media:
        css = {"all": ("records/session.css",)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: sessions are made by talking."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Session | None = None) -> bool:
        """Refuse: what was said stays as it was."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Session | None = None) -> bool:
        """Refuse: rows and recordings belong together."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        """Return sessions with their titles."""
        return Session.objects.with_first_words()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Session], search_term: str
    ) -> tuple[QuerySet[Session], bool]:
        """Find a session by its id as well."""
        try:
            return queryset.filter(id=UUID(search_term.strip())), False
        except ValueError:
            return super().get_search_results(request, queryset, search_term)

    @admin.display(description="title")
    def words(self, session: Session) -> str:
        """Show what was said first."""
        return format_html("<bdi>{}</bdi>", session.title)

    @admin.display(description="assistant", ordering="assistant__name")
    def who(self, session: Session) -> str:
        """Show the assistant's name at the time."""
        return format_html("<bdi>{}</bdi>", session.assistant_name)

    @admin.display(description="started (UTC)", ordering="started_at")
    def started(self, session: Session) -> str:
        """Show when it began."""
        return f"{session.started_at:%Y-%m-%d %H:%M}"

    @admin.display(description="items", ordering="item_count")
    def items(self, session: Session) -> int:
        """Show how many items it has; counted when it ends."""
        return session.item_count

    @admin.display(description="duration", ordering="duration_ms")
    def length(self, session: Session) -> str:
        """Show how long it was."""
        return clock(session.duration_ms)

    @admin.display(description="ended", ordering="end_reason")
    def ending(self, session: Session) -> str:
        """Show why it ended."""
        return inert(session.end_reason).replace("_", " ") if session.ended_at else "live"

    @admin.display(description="audio", boolean=True)
    def audio(self, session: Session) -> bool:
        """Show whether there is a recording."""
        return bool(session.recording)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one session, ``admin/records/session/change_form.html``."""
        session = self.get_object(request, object_id)
        if not self.has_view_permission(request, session):
            raise PermissionDenied
        if session is None:
            # Django's own answer: back to the index, with a message.
            return super().change_view(request, object_id, form_url, extra_context)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": session.title,
            "session": session,
            "length": clock(session.duration_ms),
            "ending": self.ending(session),
            "summary": inert(session.summary),
            "can_evaluate": settings.VOICE.has_chat,
            "criteria": CRITERIA,
            "evaluations": [_evaluated(found) for found in session.evaluations.select_related("asked_by")],
            "lines": [(clock(line.started_ms), line) for line in lines(session, system=True)],
            "responses": [_answer(response) for response in session.responses.all()],
            "tool_calls": [_shown(call) for call in session.tool_calls.all().values()],
            "continuations": session.continuations.with_first_words(),
            "usage": {
                inert(name): count
                for name, count in totals(session.responses.values_list("usage", flat=True)).items()
                if count
            },
            "configuration": inert(json.dumps(session.configuration, indent=2, ensure_ascii=False)),
        }
        return TemplateResponse(request, "admin/records/session/change_form.html", context)


def _answer(response: Response) -> dict[str, Any]:
    details = response.status_details or {}
    error = details.get("error")
    reason = details.get("reason") or (error.get("code") if isinstance(error, dict) else "")
    return {
        "id": inert(response.response_id),
        "status": inert(response.status),
        "reason": inert(str(reason or "")),
        "latency_ms": response.latency_ms,
        "tokens": (response.usage or {}).get("total_tokens"),
    }


def _shown(call: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **inert_fields(call),
        "at": clock(call["started_ms"]),
        "took_ms": max(0, call["ended_ms"] - call["started_ms"]),
    }


def _evaluated(found: Evaluation) -> dict[str, Any]:
    return {
        "at": f"{found.created_at:%Y-%m-%d %H:%M}",
        "by": found.asked_by.get_username() if found.asked_by else "",
        "model": inert(found.model),
        "overall": found.overall,
        "comment": inert(found.comment),
        "scores": [inert_fields(score) for score in found.scores],
    }
