"""Addresses of services, as people write them."""

from __future__ import annotations

from urllib.parse import urlsplit


def scheme_of(url: str) -> str:
    """Return the scheme of an address that has a host; nothing where it has none or cannot be read."""
    try:
        address = urlsplit(url)
        # A port that is none shows only when it is asked for.
        return address.scheme if address.hostname and address.port != 0 else ""
    except ValueError:
        return ""


def service_base(endpoint: str, *, websocket: bool) -> str:
    """Return ``https://host[/prefix]`` of a service, or ``wss://…``; unencrypted where ``endpoint`` is.

    What a portal adds from ``/openai`` on is not part of it.
    """
    address = urlsplit(endpoint)
    plain = address.scheme in ("http", "ws")
    scheme = ("ws" if plain else "wss") if websocket else ("http" if plain else "https")
    return f"{scheme}://{address.netloc}{address.path.split('/openai', 1)[0].rstrip('/')}"
