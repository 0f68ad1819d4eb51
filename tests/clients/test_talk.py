"""``manage.py talk`` against the real server with the real engine: whole conversations from a shell."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from tests.browser.product import running_product
from tests.parts.engine_parts import heard_as, quiet, recording
from tests.parts.places import ROOT
from tests.parts.servers import fetched, free_port
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.talk import Talk
from voiceapp.config import SETTINGS
from voiceapp.datafolder.server_note import write_server_file
from voiceapp.errors import AudioFormatError, UpstreamError
from voiceapp.protocol.page import SessionStart
from voiceapp.web.management.commands.talk import cookie_by_link, machine_zone
from voiceapp.web.signin import make_token

pytestmark = pytest.mark.slow


def environment(data_dir: Path) -> dict[str, str]:
    """Return the environment of a command on a data folder, without the caller's own settings."""
    known = {setting.name for setting in SETTINGS} | {"DJANGO_SETTINGS_MODULE"}
    return {
        **{name: value for name, value in os.environ.items() if name not in known},
        "VOICEAPP_DATA_DIR": str(data_dir),
        "VIRTUAL_ENV": sys.prefix,
    }


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a running server with two assistants who telephone."""
    folder = tmp_path_factory.mktemp("talk")
    with running_product(folder) as link:
        code = (
            "from voiceapp.records.models import Assistant; [Assistant.objects.create("
            "slug=law, name='Phone', input_format=f'audio/{law}', output_format=f'audio/{law}')"
            " for law in ('pcmu', 'pcma')]"
        )
        made = manage(folder, "shell", "--verbosity", "0", "-c", code)
        assert made.returncode == 0, made.stderr
        # The models load in the background, and the first words must not wait for them here.
        wait_for(f"{link.rpartition('/signin/')[0]}/healthz", '"ready"')
        yield folder


def wait_for(address: str, words: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if words in urllib.request.urlopen(address, timeout=PATIENCE_S).read().decode():
                return
        except urllib.error.URLError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{address} did not come to say {words}")


def manage(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(data_dir),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def talk(data_dir: Path, *arguments: str) -> dict[str, Any]:
    done = manage(data_dir, "talk", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def sound_file(folder: Path, name: str, audio: bytes = b"") -> str:
    """Write a recording, or other sound, for the command to play; return where it is."""
    path = folder / f"{name}.wav"
    soundfile.write(path, np.frombuffer(audio or recording(name), "<i2"), 24_000)
    return str(path)


@pytest.fixture(scope="module")
def talks(data_dir: Path) -> dict[str, Future[dict[str, Any]]]:
    """Conversations of some seconds each, held four at a time, which is as many as a user may hold."""
    both = sound_file(data_dir, "both", recording("weather") + quiet(2000) + recording("hello"))
    hello = sound_file(data_dir, "hello")
    said: dict[str, tuple[str, ...]] = {
        "mixed": (hello, "--text", "My name is Ada.", "--text", "What is my name?"),
        "barge-in": (both,),
        "pcmu": (hello, "--assistant", "pcmu"),
        "pcma": (hello, "--assistant", "pcma"),
        "tools": ("--text", "Take a note: buy milk.", "--text", "What are my notes?"),
        "question": (hello, "--out", str(data_dir / "reply.wav")),
    }
    with ThreadPoolExecutor(4) as pool:
        held = {}
        for name, arguments in said.items():
            held[name] = pool.submit(talk, data_dir, *arguments)
    # All are over before a test holds one of its own.
    return held


Talks = dict[str, Future[dict[str, Any]]]


def test_a_question_is_heard_answered_and_written_down(data_dir: Path, talks: Talks) -> None:
    result = talks["question"].result()
    reply = data_dir / "reply.wav"
    [turn] = result["turns"]
    assert heard_as(turn["user"]) == "hello"
    assert turn["assistant"]
    assert 0 <= turn["first_audio_ms"] < turn["from_last_word_ms"]
    samples, rate = soundfile.read(reply, dtype="float32")
    assert rate == 24_000
    assert abs(len(samples) / 24 - result["reply_ms"]) <= 1
    assert np.sqrt(np.mean(samples**2)) > 0.01
    assert result["ended"] == "hung_up"


def test_typing_and_speaking_share_one_conversation(talks: Talks) -> None:
    result = talks["mixed"].result()
    assert [bool(turn["assistant"]) for turn in result["turns"]] == [True, True, True]
    assert "Ada" in result["turns"][2]["assistant"]


def test_the_tools_that_come_along_are_called_from_ordinary_sentences(talks: Talks) -> None:
    answers = [turn["assistant"] for turn in talks["tools"].result()["turns"]]
    assert answers == ["I noted: buy milk.", "There is one note: buy milk."]


@pytest.mark.parametrize("law", ["pcmu", "pcma"])
def test_a_telephone_assistant_hears_and_speaks_g711(talks: Talks, law: str) -> None:
    [turn] = talks[law].result()["turns"]
    assert heard_as(turn["user"]) == "hello"
    assert turn["assistant"]


def test_speaking_into_an_answer_cuts_it(talks: Talks) -> None:
    first, second = talks["barge-in"].result()["turns"]
    assert first["heard"]
    assert len(first["heard"]) < len(first["assistant"])
    assert second["assistant"]


def test_a_server_that_stops_tells_and_keeps(tmp_path: Path) -> None:
    speaker = None
    with running_product(tmp_path) as link:
        wait_for(f"{link.rpartition('/signin/')[0]}/healthz", '"ready"')
        speaker = subprocess.Popen(
            [sys.executable, "manage.py", "talk", "--json", sound_file(tmp_path, "hello"), "--text=Go on."],
            cwd=ROOT,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        database = tmp_path / "voiceapp.sqlite3"
        spoken = "SELECT count(*) FROM records_item"
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and query(database, spoken) == [(0,)]:
            time.sleep(0.05)
    # Leaving the block sent SIGTERM and waited for the end.
    out, _ = speaker.communicate(timeout=PATIENCE_S)
    assert json.loads(out)["ended"] == "server_stopped"
    assert query(database, "SELECT end_reason FROM records_session") == [("server_stopped",)]
    assert query(database, spoken) != [(0,)]


def query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
    connection.close()
    return rows


def test_the_development_server_talks_too(data_dir: Path) -> None:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        cwd=ROOT,
        env=environment(data_dir),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/healthz", '"ok"')
        [turn] = talk(data_dir, "--url", url, "--text", "What is two plus three?")["turns"]
        assert "5" in turn["assistant"] or "five" in turn["assistant"]
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


MISTAKES: dict[tuple[str, ...], str] = {
    (): "Give a sound file",
    ("nowhere.wav",): "There is no file nowhere.wav",
    ("--text", "hi", "--url", "http://127.0.0.1:9"): "There is no server at http://127.0.0.1:9",
    ("--text", "hi", "--url", "http://127.0.0.1:9/signin/x"): "The sign-in link does not work",
    ("--text", "hi", "--url", "nonsense"): "nonsense is not a server's address",
    ("--text", "hi", "--url", "http://["): "http://[ is not a server's address",
    ("--text", "hi", "--url", "http://h:70000/signin/x"): "is not a server's address",
    ("--text", "hi", "--out", "/nowhere/x.wav"): "/nowhere/x.wav cannot be written",
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("arguments", MISTAKES)
def test_what_cannot_work_is_a_sentence(arguments: tuple[str, ...], settings: Any, tmp_path: Path) -> None:
    settings.VOICE = replace(settings.VOICE, data_dir=tmp_path)
    write_server_file(tmp_path, "http://127.0.0.1:9")
    with pytest.raises(CommandError) as refusal:
        call_command("talk", *arguments)
    assert MISTAKES[arguments] in str(refusal.value)
    assert refusal.value.returncode == 1


def test_a_file_without_sound_is_a_sentence(data_dir: Path) -> None:
    done = manage(data_dir, "talk", str(ROOT / "README.md"))
    assert done.returncode == 1
    assert "cannot be read as sound" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_sound_is_found_out_before_a_server_is_called(tmp_path: Path) -> None:
    file = tmp_path / "words.wav"
    file.write_text("no sound")
    talk = Talk(print)
    with pytest.raises(AudioFormatError, match="cannot be read as sound"):
        asyncio.run(talk.run("http://127.0.0.1:9", "", file=file, texts=[], start=SessionStart()))


@pytest.mark.django_db(transaction=True)
async def test_who_is_refused_is_told_why(site: str) -> None:
    with pytest.raises(UpstreamError, match=r"refuses: Sign in first\."):
        await Talk(print).run(site, "", file=None, texts=["hi"], start=SessionStart())


@pytest.mark.parametrize(
    ("file", "zone"),
    [("zoneinfo/Asia/Tokyo", "Asia/Tokyo"), ("zoneinfo/Mars/Olympus", None), ("localtime", None)],
)
def test_the_time_zone_is_that_of_the_machine_where_it_tells(
    tmp_path: Path, file: str, zone: str | None
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / file)
    assert machine_zone(link) == zone


def test_a_folder_without_a_database_is_a_sentence(tmp_path: Path) -> None:
    done = manage(tmp_path, "talk", "--text", "hi", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "The database of this data folder cannot be used." in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_server_it_says_how_to_start_one(tmp_path: Path) -> None:
    done = manage(tmp_path, "talk", "--text", "hi")
    assert done.returncode == 1
    assert "python3 manage.py up" in done.stderr


@pytest.mark.django_db(transaction=True)
def test_a_sign_in_link_is_used_as_people_use_it(live_server: Any, user: User) -> None:
    link = f"{live_server.url}/signin/{make_token(user)}"
    cookies = cookie_by_link(link)
    assert "voiceapp_session=" in cookies
    assert b'id="page-config"' in fetched(f"{live_server.url}/", cookies)
    with pytest.raises(CommandError, match="does not work any more"):
        cookie_by_link(link)
