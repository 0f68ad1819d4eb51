"""Keys are made once, kept, and never shown."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from voiceapp.datafolder.keys import kept_key


def test_a_key_is_made_once_by_whoever_comes_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        keys = set(threads.map(lambda _: kept_key(tmp_path / "data", "key"), range(64)))
    assert len(keys) == 1
    assert len(keys.pop()) >= 48
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["key"]
    assert stat.S_IMODE((tmp_path / "data" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_keys_are_kept_and_never_shown() -> None:
    assert kept_key(settings.VOICE.data_dir, "secret_key") == settings.SECRET_KEY
    assert settings.VOICE.engine_api_key == kept_key(settings.VOICE.data_dir, "engine_key")
    assert settings.VOICE.engine_api_key != settings.SECRET_KEY
    for secret in (settings.SECRET_KEY, settings.VOICE.engine_api_key):
        assert secret not in repr(settings.VOICE)


def test_each_name_and_each_folder_has_a_key_of_its_own(tmp_path: Path) -> None:
    keys = {kept_key(tmp_path / folder, name) for folder in ("a", "b") for name in ("one", "two")}
    assert len(keys) == 4
    assert kept_key(tmp_path / "a", "one") in keys


def test_a_key_that_was_put_there_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("my own key\n")
    assert kept_key(tmp_path, "key") == "my own key"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        kept_key(tmp_path / "file", "key")
