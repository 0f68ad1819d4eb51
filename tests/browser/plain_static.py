"""The ``static`` tag without a manifest: the scripted server serves the files as they lie in the tree."""

from __future__ import annotations

from django import template

register = template.Library()


@register.simple_tag
def static(path: str) -> str:
    """Return the address of a static file."""
    return f"/static/{path}"


@register.simple_tag
def modulepreload(name: str) -> str:
    """Return no links: the page's modules come one after another."""
    return ""
