"""Where commands find the server that they talk to."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import pytest
from django.core.management import CommandError

from voiceapp.clients.address import add_server_arguments, given_token, server_address, socket_address
from voiceapp.datafolder.server_note import remove_server_file, write_server_file


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://voice.example/path?x=1", "https://voice.example"),
        (" ws://h:1/ws/voice/ ", "http://h:1"),
        ("wss://h", "https://h"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_a_server_is_named_by_any_of_its_addresses(given: str, address: str) -> None:
    assert server_address(given, Path("nowhere")) == address


@pytest.mark.parametrize(
    "given", ["localhost:8000", "ftp://h", "http://", "http://h:0", "http://h:x", "http://[bad"]
)
def test_what_is_no_address_is_a_sentence(given: str) -> None:
    with pytest.raises(CommandError, match="is not a server's address"):
        server_address(given, Path("nowhere"))


def test_without_a_name_it_is_the_server_on_the_data_folder(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"python3 manage\.py up"):
        server_address(None, tmp_path)
    write_server_file(tmp_path, "http://127.0.0.1:1234")
    try:
        assert server_address(None, tmp_path) == "http://127.0.0.1:1234"
        assert socket_address(None, tmp_path, "/nnrp") == "ws://127.0.0.1:1234/nnrp"
    finally:
        remove_server_file(tmp_path)
    assert socket_address("https://h", tmp_path, "/nnrp") == "wss://h/nnrp"


def test_a_token_comes_from_the_command_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEAPP_TOKEN", "va_env")
    parser = ArgumentParser()
    add_server_arguments(parser)
    assert given_token(vars(parser.parse_args([]))) == "va_env"
    assert given_token(vars(parser.parse_args(["--token", "va_1"]))) == "va_1"
    with pytest.raises(CommandError, match="Give an API token"):
        given_token({"token": ""})
