"""Links by which a browser fetches all modules of a page at once and not one after another."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from django import template
from django.conf import settings
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from voiceapp.web.modules import imported_by

register: Final = template.Library()


@register.simple_tag
def modulepreload(name: str) -> SafeString:
    """Return a link for the module of this name and for each that it needs."""
    needed = imported_by(name, _read) if settings.DEBUG else _known(name)
    return format_html_join("\n", '<link rel="modulepreload" href="{}">', ((static(one),) for one in needed))


@cache
def _known(name: str) -> tuple[str, ...]:
    return tuple(imported_by(name, _read))


def _read(name: str) -> str:
    path = finders.find(name)
    if path is None:
        raise FileNotFoundError(name)
    return Path(path).read_text("utf-8")
