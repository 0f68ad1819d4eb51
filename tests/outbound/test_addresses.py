"""Addresses of services, as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.outbound.addresses import scheme_of, service_base


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("https://a.example", "https"),
        ("HTTP://a.example:8000/path", "http"),
        ("wss://[::1]:443", "wss"),
        ("a.example", ""),
        ("https://", ""),
        ("https:///path", ""),
        ("https://a:0", ""),
        ("https://a:70000", ""),
        ("https://a:port", ""),
        ("https://[bad", ""),
        ("", ""),
    ],
)
def test_an_address_has_a_scheme_where_it_can_be_reached(url: str, scheme: str) -> None:
    assert scheme_of(url) == scheme


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    assert isinstance(scheme_of(text), str)


@pytest.mark.parametrize(
    ("endpoint", "over_http", "over_websocket"),
    [
        ("https://r.openai.azure.com", "https://r.openai.azure.com", "wss://r.openai.azure.com"),
        ("https://r.azure.com/openai/v1/", "https://r.azure.com", "wss://r.azure.com"),
        ("https://h/gate/openai/realtime?x=1", "https://h/gate", "wss://h/gate"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000", "ws://127.0.0.1:8000"),
        ("ws://127.0.0.1:8000", "http://127.0.0.1:8000", "ws://127.0.0.1:8000"),
        ("wss://h:1", "https://h:1", "wss://h:1"),
    ],
)
def test_what_a_portal_shows_leads_to_the_service(endpoint: str, over_http: str, over_websocket: str) -> None:
    assert service_base(endpoint, websocket=False) == over_http
    assert service_base(endpoint, websocket=True) == over_websocket
