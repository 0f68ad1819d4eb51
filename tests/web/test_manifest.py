"""The page can be installed: its manifest names icons that are there, in the sizes that it says."""

from __future__ import annotations

import pathlib
import struct

from django.contrib.staticfiles import finders
from django.test import Client


def size_of_png(data: bytes) -> tuple[int, int]:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack("!II", data[16:24])
    return width, height


def test_everybody_is_shown_what_an_installed_page_is(client: Client) -> None:
    answer = client.get("/manifest.webmanifest")
    assert answer.headers["Content-Type"] == "application/manifest+json"
    told = answer.json()
    assert (told["name"], told["start_url"], told["display"]) == ("voiceapp", "/", "standalone")
    assert {icon["purpose"] for icon in told["icons"]} == {"any", "maskable"}
    for icon in told["icons"]:
        path = finders.find(icon["src"].removeprefix("/static/"))
        assert path is not None
        with pathlib.Path(path).open("rb") as file:
            width, height = size_of_png(file.read())
        assert icon["sizes"] == f"{width}x{height}"


def test_every_page_names_it_and_the_icon_of_apple_s_home_screens(client: Client) -> None:
    html = client.get("/login/", follow=True).content.decode()
    assert '<link rel="manifest" href="/manifest.webmanifest">' in html
    path = finders.find("voiceapp/icons/apple-touch-icon.png")
    assert path is not None
    assert 'href="/static/voiceapp/icons/apple-touch-icon.png"' in html
    with pathlib.Path(path).open("rb") as file:
        assert size_of_png(file.read()) == (180, 180)


def test_it_is_only_read(client: Client) -> None:
    assert client.post("/manifest.webmanifest").status_code == 405
