"""The table of HTTP tools: services that an administrator describes by an OpenAPI document."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import cast

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from voiceapp.assistants.http_tools import Auth, HttpToolsConfig, Place, address_fault, secret_fault
from voiceapp.records.validation import validate_operations
from voiceapp.tools.http.openapi import Document, DocumentFault, read_document

logger = logging.getLogger(__name__)

AUTH_CHOICES = [
    ("", "Nothing"),
    ("bearer", "A token, as Authorization: Bearer"),
    ("header", "A header"),
    ("query", "A query parameter"),
]

# A new session needs the same document as the last one, and reading a large one takes its time.
read = lru_cache(maxsize=16)(read_document)


def _operations(label: str, help_text: str) -> models.JSONField[list[str]]:
    return models.JSONField(
        label, default=list, blank=True, validators=[validate_operations], help_text=help_text
    )


class HttpToolSet(models.Model):
    """One service and its operations, each of which becomes a tool. ``secret`` is never shown."""

    name = models.CharField(max_length=100, help_text="Shown while a call runs.")
    slug = models.SlugField(max_length=24, unique=True, help_text="The tools' names begin with it.")
    enabled = models.BooleanField(default=True, help_text="Off: no session that begins has its tools.")
    document = models.TextField(
        "OpenAPI document",
        help_text="OpenAPI 3.0 or 3.1, as JSON. YAML has to be made JSON first.",
    )
    base_url = models.CharField(
        "address",
        max_length=2048,
        blank=True,
        help_text="Such as https://api.example.com/v1. Empty: the document's first server.",
    )
    auth = models.CharField("signs in with", max_length=8, blank=True, choices=AUTH_CHOICES, default="")
    auth_name = models.CharField(
        "header or parameter", max_length=128, blank=True, help_text="Its name, such as X-API-Key."
    )
    secret = models.CharField(max_length=8192, blank=True, editable=False)
    operations = _operations(
        "operations offered",
        'By operationId, or else as in "GET /orders": ["listOrders", "cancelOrder"]. Empty: all.',
    )
    asks = _operations(
        "asked about too",
        "Operations that the user is asked about before each call. Those that are not GET or HEAD "
        "are anyway.",
    )
    unasked = _operations(
        "not asked about", "Operations that are called without asking, although they are not GET or HEAD."
    )

    class Meta:
        ordering = ("name", "id")
        verbose_name = "HTTP tool set"
        verbose_name_plural = "HTTP tools"

    def __str__(self) -> str:
        return self.name

    def read(self) -> Document:
        """Return what the document offers of what is wanted; raise ``DocumentFault``."""
        return read(self.document, _names(self.operations), fixed_address=bool(self.base_url))

    @property
    def address(self) -> str:
        """Where the service is; empty where neither the set nor its document says so."""
        if self.base_url:
            return self.base_url
        try:
            return self.read().base_url
        except DocumentFault:
            return ""

    def count(self) -> int:
        """Return how many tools it makes, 0 where its document can no longer be read."""
        try:
            return len(self.read().operations)
        except DocumentFault:
            return 0

    def clean(self) -> None:
        """Refuse what could not be called; raises ``ValidationError`` with what is wrong and where."""
        self.operations, self.asks = self.operations or [], self.asks or []
        self.unasked = self.unasked or []
        if not self.document:
            # That is told already.
            return
        try:
            document = self.read()
        except DocumentFault as error:
            raise ValidationError({"document": error.message}) from None
        if not document.operations:
            key, reason = document.left_out[0]
            raise ValidationError({"document": f"No operation can be called. {key}: {reason}."})
        address = self.base_url or document.base_url
        if not address:
            raise ValidationError({"base_url": "The document does not say a whole address: give one here."})
        if wrong := address_fault(address, private_allowed=settings.VOICE.private_addresses):
            raise ValidationError({"base_url": wrong})
        changing = {operation.key: operation.changes for operation in document.operations}
        asks, unasked = _names(self.asks), _names(self.unasked)
        for field, keys in (("asks", asks), ("unasked", unasked)):
            for key in keys:
                if key not in changing:
                    raise ValidationError({field: f"There is no operation {key[:80]!r} among those offered."})
        if both := set(asks) & set(unasked):
            raise ValidationError({"unasked": f"{min(both)!r} is asked about as well."})

    def secret_fault(self) -> tuple[str, str]:
        """Return (field of the form, sentence) for what is wrong with the secret, or two empty texts."""
        return secret_fault(self.auth, self.auth_name, self.secret)

    def config(self) -> HttpToolsConfig | None:
        """Return the set as a session runs with it; ``None`` where its document can no longer be read."""
        try:
            document = self.read()
        except DocumentFault as error:
            logger.warning("The HTTP tools %s are left out: %s", self.slug, error.message)
            return None
        operations = document.operations
        if self.auth in ("header", "query"):
            # The secret is given here; the model shall not be asked for it.
            place = cast(Place, self.auth)
            operations = tuple(one.without(place, self.auth_name) for one in operations)
        asked = {operation.key for operation in operations if operation.changes}
        return HttpToolsConfig(
            slug=self.slug,
            name=self.name,
            base_url=self.base_url or document.base_url,
            auth=cast(Auth, self.auth),
            auth_name=self.auth_name,
            secret=self.secret,
            operations=operations,
            asked=frozenset((asked | set(_names(self.asks))) - set(_names(self.unasked))),
        )


def _names(value: object) -> tuple[str, ...]:
    """Return the names in a field, which may hold anything until it was checked."""
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()
