"""Django's settings: cookies and transport are strict."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings
from django.test import Client

from tests.parts.django_process import django
from tests.parts.places import ROOT


def test_a_relative_data_folder_is_the_projects(tmp_path: Path) -> None:
    code = "from django.conf import settings; print(settings.VOICE.data_dir)"
    result = django("shell", "--no-imports", "-c", code, VOICEAPP_DATA_DIR=os.path.relpath(tmp_path, ROOT))
    assert Path(result.stdout.strip()).resolve() == tmp_path


def test_cookies_are_out_of_reach(client: Client) -> None:
    client.get("/login/")
    cookie = client.cookies["voiceapp_csrf"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    assert settings.SESSION_COOKIE_HTTPONLY
    assert settings.SESSION_COOKIE_SAMESITE == "Lax"


def test_https_makes_cookies_and_transport_strict(tmp_path: Path) -> None:
    result = django("check", "--deploy", "--fail-level", "ERROR",
                    VOICEAPP_DATA_DIR=str(tmp_path), VOICEAPP_HTTPS="1")  # fmt: skip
    assert result.returncode == 0
    for solved in ("W012", "W016", "W004", "W018", "W009"):
        assert f"security.{solved}" not in result.stderr
