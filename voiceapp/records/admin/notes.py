"""The admin of the users' notes: read and delete; their users write them by talking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html

from voiceapp.records.display import inert
from voiceapp.records.models import Note

if TYPE_CHECKING:
    _NoteAdmin = admin.ModelAdmin[Note]
else:
    _NoteAdmin = admin.ModelAdmin


@admin.register(Note)
class NoteAdmin(_NoteAdmin):
    """Notes, read-only but for deleting."""

    list_display = ("words", "user", "created_at", "deleted_at")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter),)
    list_select_related = ("user",)
    search_fields = ("text", "user__username")
    fields = ("user", "created_at", "deleted_at", "whole")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: notes are made by talking."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Note | None = None) -> bool:
        """Refuse: a note is its user's."""
        return False

    @admin.display(description="note")
    def words(self, note: Note) -> str:
        """Show the beginning."""
        return format_html("<bdi>{}</bdi>", str(note))

    @admin.display(description="text")
    def whole(self, note: Note) -> str:
        """Show all of it."""
        return format_html("<bdi>{}</bdi>", inert(note.text))
