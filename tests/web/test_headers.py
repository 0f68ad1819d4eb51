"""Every response keeps the site's pages to the site's own code."""

from __future__ import annotations

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.test import Client

from voiceapp.web.headers import CONTENT_SECURITY_POLICY, SecurityHeaders


def test_every_response_carries_the_policies(client: Client) -> None:
    for address in ("/login/", "/static/voiceapp/mark.svg", "/nowhere/"):
        response = client.get(address)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["Permissions-Policy"].startswith("microphone=(self)")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"


def test_what_a_page_loads_is_governed_by_that_page(client: Client) -> None:
    for address in ("/static/records/session.css", "/static/voiceapp/app.js"):
        headers = client.get(address).headers
        assert "Content-Security-Policy" not in headers
        assert headers["X-Content-Type-Options"] == "nosniff"


async def test_the_policies_are_added_in_step_with_the_next_layer() -> None:
    async def later(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    def at_once(request: HttpRequest) -> HttpResponse:
        return HttpResponse(headers={"Permissions-Policy": "camera=()"})

    waiting = SecurityHeaders(later)
    assert iscoroutinefunction(waiting)
    answer = waiting(HttpRequest())
    assert not isinstance(answer, HttpResponse)
    assert (await answer).headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    direct = SecurityHeaders(at_once)(HttpRequest())
    assert isinstance(direct, HttpResponse)
    # What a view says itself stays.
    assert direct.headers["Permissions-Policy"] == "camera=()"
