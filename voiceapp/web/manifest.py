"""What a browser needs to install the page as an app (W3C, Web Application Manifest)."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, JsonResponse
from django.templatetags.static import static
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

KEPT_S: Final = 3600
"""How long a browser keeps it: its icons' names change with the icons."""
PAPER: Final = "#f6f3ec"
_ICONS: Final = (
    ("icon-192", "192x192", "any"),
    ("icon-512", "512x512", "any"),
    ("icon-maskable-512", "512x512", "maskable"),
)


@require_safe
@cache_control(max_age=KEPT_S)
def manifest(request: HttpRequest) -> JsonResponse:
    """Return name, start and icons; for everybody, since browsers ask for it without saying who they are."""
    icons = [
        {"src": static(f"voiceapp/icons/{name}.png"), "sizes": sizes, "type": "image/png", "purpose": purpose}
        for name, sizes, purpose in _ICONS
    ]
    return JsonResponse(
        {
            "name": "voiceapp",
            "short_name": "voiceapp",
            "description": "Talk with an AI.",
            "id": "/",
            "start_url": "/",
            "scope": "/",
            "display": "standalone",
            "background_color": PAPER,
            "theme_color": PAPER,
            "icons": icons,
        },
        content_type="application/manifest+json",
    )
