"""The tables of API tokens and of what they were used for."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models


class ApiToken(models.Model):
    """A key with which a program of a user reaches the text engine, ``/nnrp`` and ``/ws/model-host/``.

    Only a digest of it is kept; ``hint`` is its beginning, by which people tell tokens apart.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="What it is for.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=16, editable=False)
    enabled = models.BooleanField(
        default=True, help_text="Off: it opens nothing, from five seconds later on."
    )
    requests_per_minute = models.PositiveIntegerField(
        default=120, validators=[MinValueValidator(1), MaxValueValidator(1_000_000)]
    )
    concurrent_requests = models.PositiveIntegerField(
        default=16,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="Requests at once, in each process.",
    )
    tokens_per_day = models.PositiveBigIntegerField(
        default=1_000_000, help_text="Tokens in and out, in a day of UTC. 0: no limit."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "name"), name="one_token_per_name"),)
        ordering = ("name", "id")
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class TokenUsage(models.Model):
    """What a token was used for in a day of UTC."""

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="usage")
    day = models.DateField()
    requests = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("token", "day"), name="one_usage_row_per_day"),)
        ordering = ("-day",)
        verbose_name_plural = "token usage"

    def __str__(self) -> str:
        return f"{self.token} on {self.day}"
