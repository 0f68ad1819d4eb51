"""The admin's form field for JSON."""

from __future__ import annotations

import json
from typing import Any

from django import forms


class _JsonDecoder(json.JSONDecoder):
    """Calls everything that cannot be read, or not be kept, a fault of the JSON."""

    def decode(self, s: str, *args: Any) -> Any:
        try:
            value = super().decode(s, *args)
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            # Numbers of thousands of digits, lone surrogates and deep nesting have errors of their own.
            raise json.JSONDecodeError(type(error).__name__, s, 0) from None
        return value


class JsonField(forms.JSONField):
    """A field for JSON that answers whatever is typed with a sentence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "decoder": _JsonDecoder})
