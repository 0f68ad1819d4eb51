"""The admin's form field for an assistant's tools: a box to tick for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString

from voiceapp.records.display import inert
from voiceapp.tools.registry import registry


class _Boxes(forms.CheckboxSelectMultiple):
    """A box for each tool, and one for each name that no tool has (any more): it can be seen and unticked."""

    class Media:
        css = {"all": ("records/tool_choice.css",)}

    def optgroups(self, name: str, value: list[str], attrs: dict[str, Any] | None = None) -> list[Any]:
        groups = super().optgroups(name, value, attrs)
        for unknown in sorted(set(value) - set(registry.names()) - {""}):
            label = format_html("<bdi>{}</bdi> (there is no such tool)", inert(unknown))
            place = len(groups)
            groups.append((None, [self.create_option(name, unknown, label, True, place, attrs=attrs)], place))
        return groups


class ToolChoice(forms.MultipleChoiceField):
    """Names of tools, as a list; whether there are such tools is the model's to check."""

    widget = _Boxes

    def __init__(self, **options: Any) -> None:
        # What the model's field says of JSON means nothing to boxes.
        kept = {name: value for name, value in options.items() if name not in ("encoder", "decoder")}
        super().__init__(choices=_offered, **kept)

    def prepare_value(self, value: Any) -> list[str]:
        """Return the names to tick."""
        return [str(each) for each in value] if isinstance(value, (list, tuple)) else []

    def to_python(self, value: Any) -> list[str]:
        """Return the names that were ticked."""
        return [name for name in super().to_python(value) if name]

    def validate(self, value: Any) -> None:
        """Leave it to the model, whose sentence names the tools that there are."""


def _offered() -> Iterator[tuple[str, SafeString]]:
    names = registry.names()
    asking = registry.ask_first(names)
    for each in registry.definitions(names):
        asks = " Asks the user first." if each["name"] in asking else ""
        yield (
            each["name"],
            format_html(
                '<strong>{}</strong> <span class="help">{}{}</span>',
                each["name"],
                inert(each["description"]),
                asks,
            ),
        )


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
