"""``manage.py up`` as a process of its own: from an empty folder to a page, and in order to its end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.cookiejar import CookieJar
from pathlib import Path

import brotli
import pytest
from django.core.management import CommandError

from tests.parts.places import ROOT
from tests.parts.servers import press
from tests.parts.waits import PATIENCE_S
from voiceapp.config import SETTINGS
from voiceapp.datafolder.server_note import read_server_file
from voiceapp.web.server import Server, address_for_people, listen

pytestmark = pytest.mark.slow


def environ(data_dir: Path, **more: str) -> dict[str, str]:
    """Return an environment in which a distant service answers, so that no models are loaded."""
    clean = {name: value for name, value in os.environ.items() if name not in {one.name for one in SETTINGS}}
    return {
        **clean, "DJANGO_SETTINGS_MODULE": "voiceapp.settings", "VOICEAPP_DATA_DIR": str(data_dir),
        "AZURE_OPENAI_ENDPOINT": "https://localhost:9", "AZURE_OPENAI_API_KEY": "key",
        "AZURE_OPENAI_DEPLOYMENT": "gpt-realtime", **more,
    }  # fmt: skip


class Up:
    """A running server, started by the command."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "django", "up", "--port", "0", *arguments], cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ(data_dir),
        )  # fmt: skip
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("Ready: "):
                break
        self.link = self.lines[-1].removeprefix("Ready: ")
        self.url = self.link.rpartition("/signin/")[0]

    def __enter__(self) -> Up:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it; return its exit code and what it still said."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, rest


def test_servers_that_start_at_once_in_an_empty_folder_all_serve(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as starting:
        servers = list(starting.map(Up, [tmp_path] * 2))
    try:
        assert all(up.link.startswith("http://127.0.0.1:") for up in servers), [up.lines for up in servers]
    finally:
        for up in servers:
            up.stop(signal.SIGKILL)


def browser() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up") / "data"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Up]:
    with Up(folder) as running:
        yield running


@pytest.fixture(scope="module")
def first_visit(server: Up) -> tuple[urllib.request.OpenerDirector, str, str]:
    """Whoever opened the link, at which address they came out, and what they were shown."""
    visitor = browser()
    with visitor.open(server.link) as page:
        assert page.url == server.link, "opening it spends nothing"
    with press(visitor, server.link) as page:
        return visitor, page.url, page.read().decode()


def test_the_link_opens_the_page_once(
    server: Up, first_visit: tuple[urllib.request.OpenerDirector, str, str]
) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/signin/[\w-]{43}", server.link), server.lines
    _, address, shown = first_visit
    assert address == f"{server.url}/"
    assert 'id="page-config"' in shown
    with browser().open(server.link) as page:
        assert page.url.startswith(f"{server.url}/login/")


def test_the_first_user_is_an_administrator(
    server: Up, first_visit: tuple[urllib.request.OpenerDirector, str, str]
) -> None:
    visitor, _, _ = first_visit
    with visitor.open(f"{server.url}/admin/records/session/") as page:
        assert page.url.endswith("/admin/records/session/")


def test_static_files_are_served_packed_and_for_good(server: Up, folder: Path) -> None:
    with urllib.request.urlopen(f"{server.url}{address_of(folder, 'records/session.js')}") as file:
        assert file.headers["Content-Type"].startswith("text/javascript")
        assert "immutable" in file.headers["Cache-Control"]
    packed = urllib.request.Request(
        f"{server.url}{address_of(folder, 'admin/css/base.css')}", headers={"Accept-Encoding": "gzip, br"}
    )
    with urllib.request.urlopen(packed) as file:
        assert file.headers["Content-Encoding"] == "br"
        assert b"{" in brotli.decompress(file.read())
    with urllib.request.urlopen(f"{server.url}/favicon.ico") as file:
        assert file.headers["Content-Type"] == "image/svg+xml"


def address_of(folder: Path, name: str) -> str:
    """Return where the server of a data folder has a static file."""
    known = json.loads((folder / "static" / "staticfiles.json").read_text())["paths"]
    return f"/static/{known[name]}"


def test_the_data_is_its_owners_only(server: Up, folder: Path) -> None:
    note = f"servers/{server.process.pid}.json"
    assert json.loads((folder / note).read_text()) == {"url": server.url}
    for name in (note, "voiceapp.sqlite3", "secret_key", "engine_key"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name


def test_starting_again_makes_nothing_anew_and_stopping_is_orderly(tmp_path: Path) -> None:
    links, made = set(), []
    for number in (signal.SIGTERM, signal.SIGINT):
        with Up(tmp_path) as running:
            links.add(running.link)
            assert read_server_file(tmp_path) == running.url
            assert running.stop(number) == (0, "")
        assert read_server_file(tmp_path) is None
        with closing(sqlite3.connect(tmp_path / "voiceapp.sqlite3")) as database:
            migrations = database.execute("SELECT id, applied FROM django_migrations").fetchall()
            users = database.execute("SELECT id, date_joined FROM auth_user").fetchall()
        made.append((migrations, users, (tmp_path / "secret_key").read_bytes()))
    assert len(links) == 2
    assert made[0] == made[1]
    assert len(made[0][1]) == 1


def test_a_taken_port_is_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = _fails(tmp_path, "--port", str(port))
    assert result == f"CommandError: Port {port} of 127.0.0.1 is taken by another program. " \
                     f"Choose another: --port {port + 1}"  # fmt: skip


@pytest.mark.parametrize(
    ("host", "port", "sentence"),
    [
        ("no.such.host.invalid", 0, "no.such.host.invalid is not an address of this machine."),
        ("a..b", 0, "a..b is not an address of this machine."),
        ("192.0.2.1", 0, "192.0.2.1 is not an address of this machine."),
        ("127.0.0.1", 70_000, "70000 is not a port: choose one from 0 to 65535."),
        ("127.0.0.1", -1, "-1 is not a port: choose one from 0 to 65535."),
    ],
)
def test_a_wrong_address_is_a_sentence(host: str, port: int, sentence: str) -> None:
    with pytest.raises(CommandError) as refusal:
        listen(host, port)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("host", "https", "url"),
    [
        ("127.0.0.1", False, "http://127.0.0.1:"),
        ("::1", False, "http://[::1]:"),
        ("0.0.0.0", True, "https://127.0.0.1:"),
    ],
)
def test_the_address_that_people_are_told(host: str, https: bool, url: str) -> None:
    with listen(host, 0) as listener:
        assert address_for_people(listener, https=https) == f"{url}{listener.getsockname()[1]}"


def test_the_longest_audio_that_the_engine_takes_passes_the_server() -> None:
    in_base64 = 15 * 1024 * 1024 * 4 // 3
    assert Server("http://localhost", print).config.ws_max_size > in_base64 + 4096


def test_a_wrong_setting_stops_the_start(tmp_path: Path) -> None:
    said = _fails(tmp_path, "--port", "0", VOICEAPP_IDLE_S="never")
    assert "VOICEAPP_IDLE_S cannot be read" in said
    assert "Traceback" not in said


def _fails(data_dir: Path, *arguments: str, **settings: str) -> str:
    command = [sys.executable, "-m", "django", "up", *arguments]
    result = subprocess.run(
        command,
        cwd=ROOT,
        text=True,
        check=False,
        capture_output=True,
        timeout=PATIENCE_S,
        env=environ(data_dir, **settings),
    )
    assert result.returncode == 1
    assert "Ready" not in result.stdout
    return result.stderr.strip()


def test_an_address_for_everybody_is_shown_as_this_machines(tmp_path: Path) -> None:
    with Up(tmp_path, "--host", "0.0.0.0") as running:
        assert running.url.startswith("http://127.0.0.1:")
        assert any("microphone on localhost only" in line for line in running.lines)
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(urllib.request.Request(running.url, headers={"Host": "evil.example"}))
        assert refusal.value.code == 400
        refusal.value.close()
