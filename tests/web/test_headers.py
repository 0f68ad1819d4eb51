"""Every response keeps the site's pages to the site's own code."""

from __future__ import annotations

from django.test import Client


def test_every_response_carries_the_policies(client: Client) -> None:
    for address in ("/login/", "/static/records/session.css", "/nowhere/"):
        response = client.get(address)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["Permissions-Policy"].startswith("microphone=(self)")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
