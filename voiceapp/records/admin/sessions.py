"""The admin's pages of sessions: a list to search, and each one to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html

from voiceapp.records.admin.usage import totals
from voiceapp.records.display import clock, inert, inert_fields, members
from voiceapp.records.models import Evaluation, Response, Session
from voiceapp.records.reading.transcript import lines

if TYPE_CHECKING:
    _SessionAdmin = admin.ModelAdmin[Session]
else:
    _SessionAdmin = admin.ModelAdmin


CRITERIA = (
    "Did the assistant understand what the user wanted?\n"
    "Was what it said right, as far as the conversation shows?\n"
    "Were its answers short and natural to listen to?\n"
    "Did the user get what they came for?"
)
"""What the evaluator's form begins with."""


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
    list_filter = (
        _Ending,
        "upstream",
        "assistant",
        "end_reason",
        "end_code",
        ("responses__status", _AnswerStatus),
    )
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
        if not session.ended_at:
            return "live"
        reason, code = inert(session.end_reason), inert(session.end_code)
        words = reason if code in ("", session.end_reason) else f"{reason}: {code.removeprefix('upstream_')}"
        return words.replace("_", " ")

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
            "cause": {"code": inert(session.end_code), "message": inert(session.end_message)},
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
    details = members(response.status_details)
    error = details.get("error")
    reason = details.get("reason") or (error.get("code") if isinstance(error, dict) else "")
    return {
        "id": inert(response.response_id),
        "status": inert(response.status),
        "reason": inert(str(reason or "")),
        "latency_ms": response.latency_ms,
        "tokens": members(response.usage).get("total_tokens"),
    }


def _shown(call: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **inert_fields(call),
        "at": clock(call["started_ms"]),
        "took_ms": max(0, call["ended_ms"] - call["started_ms"]),
    }


def _evaluated(found: Evaluation) -> dict[str, Any]:
    return {
        "at": found.created_at,
        "by": found.asked_by.get_username() if found.asked_by else "",
        "model": inert(found.model),
        "overall": found.overall,
        "comment": inert(found.comment),
        "scores": [inert_fields(members(score)) for score in found.scores]
        if isinstance(found.scores, list)
        else [],
    }
