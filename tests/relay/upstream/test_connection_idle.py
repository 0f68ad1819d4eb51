"""A quiet line to the service lives through a proxy that closes idle ones."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.parts.clock import pass_time
from tests.parts.page import Page, call_service
from tests.parts.proxy import proxy
from tests.parts.scripted import service
from voiceapp.relay.upstream import connection as upstream_module

pytestmark = pytest.mark.django_db(transaction=True)

USUAL_IDLE_S = 60
"""After how long the proxies of the world close an idle connection."""


def test_the_service_is_pinged_often_enough() -> None:
    assert upstream_module.PING_AFTER_S <= USUAL_IDLE_S / 2


@pytest.mark.parametrize("pings", [True, False])
async def test_a_quiet_line_to_the_service_stays_open(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any, monkeypatch: Any, pings: bool
) -> None:
    """A tenth of the time: idle connections are closed after six seconds, pings come after two.

    Without pings the proxy does close the line, or this would show nothing.
    """
    for name in ("PING_AFTER_S", "PING_REPLY_S"):
        monkeypatch.setattr(upstream_module, name, 2.0 if pings else 60.0)
    async with service() as upstream:
        address = urlsplit(upstream.url)
        assert address.hostname
        assert address.port
        async with proxy(address.hostname, address.port, idle_s=USUAL_IDLE_S / 10) as between:
            call_service(settings, upstream, tmp_path, azure_endpoint=f"ws://127.0.0.1:{between.port}")
            page = Page(signed_in)
            await page.connect()
            await page.until("session.ready")
            if pings:
                await pass_time(2 * USUAL_IDLE_S / 10)
                assert (upstream.connections, between.closed_idle) == (1, 0)
            else:
                await pass_time(1.1 * USUAL_IDLE_S / 10)
                assert (await page.until("notice"))["code"] == "upstream_reconnecting"
                assert between.closed_idle == 1
            await page.hang_up()


async def test_limits_are_told_as_the_service_tells_them(
    settings: Any, signed_in: dict[str, Any], tmp_path: Any
) -> None:
    async with service() as upstream:
        call_service(settings, upstream, tmp_path)
        page = Page(signed_in)
        await page.connect()
        await page.until("session.ready")
        assert "rate_limits" not in str(page.seen)
        limits = [{"name": "tokens", "limit": 1000, "remaining": 930, "reset_seconds": 4.5}]
        await upstream.send({"type": "rate_limits.updated", "rate_limits": limits})
        assert (await page.until("rate_limits.updated"))["rate_limits"] == limits
        await page.hang_up()
