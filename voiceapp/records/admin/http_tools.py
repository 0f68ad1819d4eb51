"""The admin's pages for HTTP tools: a document to upload or paste, a secret to give, what tools result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from voiceapp.records.admin.fields import JsonField
from voiceapp.records.display import inert
from voiceapp.records.models import HttpToolSet
from voiceapp.tools.http.openapi import MAX_DOCUMENT_BYTES, DocumentFault

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[HttpToolSet]
    _Form = forms.ModelForm[HttpToolSet]
else:
    _Admin = admin.ModelAdmin
    _Form = forms.ModelForm


_LISTS = ("operations", "asks", "unasked")


class HttpToolSetForm(_Form):
    """The fields of a set; a file goes before what is pasted, and an empty secret keeps the one there is."""

    upload = forms.FileField(
        label="OpenAPI file", required=False, help_text="A JSON file, instead of pasting it below."
    )
    new_secret = forms.CharField(
        label="Secret",
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "size": 60}),
        help_text="The token or key; it is never shown again. Empty: the one that is there stays.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._signed_in_at = _origin(self.instance.address) if self.instance.pk else ("", "")
        if "document" in self.fields:
            # The file may bring it.
            self.fields["document"].required = False

    class Meta:
        field_classes = dict.fromkeys(_LISTS, JsonField)
        widgets = {
            "document": forms.Textarea(attrs={"rows": 12, "cols": 90, "spellcheck": "false"}),
            **{name: forms.Textarea(attrs={"rows": 2, "cols": 90}) for name in _LISTS},
            "base_url": forms.TextInput(attrs={"size": 60}),
        }

    def clean(self) -> dict[str, Any]:
        """Take the file's text as the document."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        upload = cleaned.get("upload")
        if upload is not None:
            try:
                cleaned["document"] = _text_of(upload)
            except ValidationError as error:
                self.add_error("upload", error)
        elif cleaned.get("document"):
            # Browsers send every line's end as two characters, which a file may not have.
            cleaned["document"] = cleaned["document"].replace("\r\n", "\n")
        elif "document" not in self.errors:
            self.add_error("document", "Give a document: upload a file, or paste it.")
        return cleaned

    def _post_clean(self) -> None:
        """Check the set as a whole, the secret that it would have among it."""
        kept = self.instance.secret
        given = self.cleaned_data.get("new_secret") or ""
        super()._post_clean()  # type: ignore[misc]
        instance = self.instance
        instance.secret = (given or kept) if instance.auth else ""
        if self.errors:
            return
        if instance.secret and not given and self._signed_in_at != _origin(instance.address):
            # Whoever may change the address shall not have the old secret sent to it.
            sentence = "Give the secret again: it would be sent to another address than so far."
            self.add_error("new_secret", sentence)
            return
        field, wrong = instance.secret_fault()
        if wrong:
            self.add_error(field, wrong)


def _text_of(upload: Any) -> str:
    if upload.size > MAX_DOCUMENT_BYTES:
        raise ValidationError(f"The document may have {MAX_DOCUMENT_BYTES:,} bytes at most.")
    try:
        text: str = upload.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValidationError("The file is no text in UTF-8.") from None
    if "\0" in text:
        raise ValidationError("The file is no JSON: it has a NUL character.")
    return text


def _origin(address: str) -> tuple[str, str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc.lower()


@admin.register(HttpToolSet)
class HttpToolSetAdmin(_Admin):
    """HTTP tools; a change counts for sessions that begin after it."""

    form = HttpToolSetForm
    list_display = ("name", "slug", "enabled", "address_shown", "count")
    list_filter = ("enabled",)
    search_fields = ("name", "slug", "base_url")
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("address_shown", "tools", "has_secret")
    _fieldsets = (
        (None, {"fields": ("name", "slug", "enabled", "upload", "document", "base_url")}),
        ("Signing in", {"fields": ("auth", "auth_name", "new_secret", "has_secret")}),
        ("Operations", {"fields": ("operations", "asks", "unasked", "tools")}),
    )

    class Media:
        css = {"all": ("records/http_tools.css",)}

    def get_fieldsets(self, request: HttpRequest, obj: HttpToolSet | None = None) -> Any:
        """Leave out what only a form has where there is none, and what only a saved set has."""
        may_change = obj is None or self.has_change_permission(request, obj)
        hidden = set() if may_change else {"upload", "new_secret"}
        if obj is None:
            hidden |= {"tools", "has_secret"}
        return [
            (title, {"fields": [name for name in options["fields"] if name not in hidden]})
            for title, options in self._fieldsets
        ]

    @admin.display(description="address")
    def address_shown(self, tools: HttpToolSet) -> str:
        """Show where the service is."""
        return inert(tools.address)

    @admin.display(description="tools")
    def count(self, tools: HttpToolSet) -> str:
        """Show how many tools it makes."""
        return str(tools.count() or "none: the document cannot be read")

    @admin.display(description="has a secret", boolean=True)
    def has_secret(self, tools: HttpToolSet) -> bool:
        """Show whether there is one."""
        return bool(tools.secret)

    @admin.display(description="tools")
    def tools(self, tools: HttpToolSet) -> str:
        """Show what the saved document makes: each tool, whether it asks first, and what was left out."""
        try:
            document = tools.read()
        except DocumentFault as error:
            return inert(error.message)
        config = tools.config()
        asked = config.asked if config else frozenset()
        rows = format_html_join(
            "",
            "<tr><td><bdi>{}</bdi></td><td>{} <bdi>{}</bdi></td><td>{}</td><td><bdi>{}</bdi></td></tr>",
            (
                (
                    inert(operation.key),
                    operation.method,
                    inert(operation.path),
                    "asks first" if operation.key in asked else "",
                    inert(operation.description),
                )
                for operation in document.operations
            ),
        )
        left_out = format_html_join(
            "",
            '<tr class="left-out"><td><bdi>{}</bdi></td><td colspan="3">left out: <bdi>{}</bdi></td></tr>',
            ((inert(key), inert(reason)) for key, reason in document.left_out),
        )
        return format_html(
            '<div class="http-tools"><table><thead><tr><th>Operation</th><th>Request</th><th>User</th>'
            "<th>Description</th></tr></thead><tbody>{}{}</tbody></table></div>",
            rows,
            left_out,
        )
