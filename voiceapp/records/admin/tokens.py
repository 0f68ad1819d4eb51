"""The admin's pages for API tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.http import HttpRequest

from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.records.store.tokens import new_text

if TYPE_CHECKING:
    _TokenAdmin = admin.ModelAdmin[ApiToken]
    _UsageInline = admin.TabularInline[TokenUsage, ApiToken]
else:
    _TokenAdmin = admin.ModelAdmin
    _UsageInline = admin.TabularInline


class _Usage(_UsageInline):
    """What a token was used for, the last days first."""

    model = TokenUsage
    fields = readonly_fields = ("day", "requests", "tokens_in", "tokens_out", "cost_usd")
    extra = 0
    max_num = 0
    can_delete = False


@admin.register(ApiToken)
class ApiTokenAdmin(_TokenAdmin):
    """Tokens; the text of a new one is shown once, after it is saved."""

    list_display = ("name", "hint", "user", "enabled", "created_at")
    list_filter = ("enabled",)
    list_select_related = ("user",)
    search_fields = ("name", "hint", "user__username")
    fields = ("user", "name", "enabled", "requests_per_minute", "concurrent_requests", "tokens_per_day")
    inlines = (_Usage,)

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Give a new token its text."""
        if change:
            obj.save()
            return
        text, obj.digest, obj.hint = new_text()
        obj.save()
        sentence = (
            f"The token is {text} – copy it now: only a digest of it is kept, and it is not shown again."
        )
        messages.warning(request, sentence)
