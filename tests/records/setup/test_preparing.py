"""What kill -9 leaves is found in order at the next start."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import soundfile
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from tests.parts.places import ROOT
from voiceapp.audio.formats import AudioFormat
from voiceapp.config import SETTINGS
from voiceapp.conversation.records import ItemRecord
from voiceapp.records.models import Session
from voiceapp.records.recording.archive import archiver, journal_path, journals_ms, recordings_folder
from voiceapp.records.recording.journal import Journal
from voiceapp.records.store import store, takeover
from voiceapp.records.store import writer as writing
from voiceapp.records.store.writer import writer

_START = """
import asyncio, json, os, sys, threading
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
from voiceapp.audio.formats import AudioFormat
from voiceapp.records.store import store
from voiceapp.records.models import Item, Session
from voiceapp.records.recording.recorder import Recorder, recordings_folder
from voiceapp.process import current
current()
"""
_TALKS = (
    _START
    + """
from voiceapp.records.recording import recorder
from voiceapp.records.store import writer as writing
from voiceapp.records.store.writer import writer
from voiceapp.conversation.records import ItemRecord
write_rows = writing.write_rows

def tell(what, at_ms):
    # In one piece: two threads tell.
    os.write(1, f"{what} {at_ms}\\n".encode())

def write(batch):
    write_rows(batch)
    tell("committed", max(record.ended_ms for record in batch.values()))

writing.write_rows = write

async def main(user_id):
    opened = await store.open_session(user_id=user_id, assistant_slug=None, upstream="embedded")
    folder = recordings_folder(settings.VOICE.data_dir)
    live = Recorder(folder, opened.session_id, AudioFormat.PCM16, AudioFormat.PCM16)
    previous, at = None, 0
    while True:
        at += 20
        live.microphone(bytes([1, 2]) * 480, at)
        if at % 100 == 0:
            name = f"item_{at}"
            writer().save_item(opened.session_id, ItemRecord(
                item_id=name, previous_item_id=previous, type="message", role="user", raw={},
                started_ms=at - 100, ended_ms=at))
            previous = name
            tell("said", at)
            # Here time passes faster than it does: the disk, which is as fast as it is, keeps pace.
            kept = threading.Event()
            recorder.disk().submit(kept.set)
            kept.wait()
        await asyncio.sleep(0.002)
call_command("migrate", verbosity=0)
from django.contrib.auth.models import User
user = User.objects.create_user("ada")
asyncio.run(main(user.pk))
"""
)
_REPAIRS = (
    _START
    + """
from voiceapp.records.recording.archive import archiver
closed = store.repair_unfinished()
archiver().wait()
session = Session.objects.get()
print(json.dumps({"closed": closed, "again": store.repair_unfinished(), "reason": session.end_reason,
    "expected": session.expected, "duration_ms": session.duration_ms, "recording": session.recording,
    "items": session.item_count, "in_order": [item.ended_ms for item in session.items.all()]}))
"""
)


def python(code: str, data_dir: Path) -> dict[str, Any]:
    """Return what runs ``code`` with the product's settings on SQLite, as arguments of ``subprocess``."""
    names = {one.name for one in SETTINGS}
    clean = {name: value for name, value in os.environ.items() if name not in names}
    more = {"DJANGO_SETTINGS_MODULE": "voiceapp.settings", "VOICEAPP_DATA_DIR": str(data_dir)}
    return {"args": [sys.executable, "-c", code], "cwd": ROOT, "env": {**clean, **more}, "text": True}


def test_kill_9_loses_nothing_that_was_committed_and_two_seconds_of_audio_at_most(tmp_path: Path) -> None:
    process = subprocess.Popen(**python(_TALKS, tmp_path), stdout=subprocess.PIPE)
    assert process.stdout is not None
    last = {"said": 0, "committed": 0}
    try:
        for line in process.stdout:
            what, at_ms = line.split()
            last[what] = int(at_ms)
            if last["committed"] >= 4000:
                break
        running = subprocess.run(**python(_REPAIRS, tmp_path), capture_output=True, check=True)
        # As long as the process lives, nobody closes its session.
        assert json.loads(running.stdout)["closed"] == 0
    finally:
        process.kill()
        last |= {what: int(at_ms) for what, at_ms in (line.split() for line in process.stdout)}
        process.stdout.close()
        process.wait()
    repaired = subprocess.run(**python(_REPAIRS, tmp_path), capture_output=True, check=True)
    found: dict[str, Any] = json.loads(repaired.stdout)
    assert (found["closed"], found["again"]) == (1, 0)
    assert (found["reason"], found["expected"]) == ("server_stopped", False)
    # What was said is committed every quarter of a second, and what was committed is there.
    assert writing.BATCH_S < 1
    due = list(range(100, last["committed"] + 1, 100))
    assert found["in_order"][: len(due)] == due
    assert found["items"] == len(found["in_order"])
    info = soundfile.info(tmp_path / found["recording"])
    assert info.duration * 1000 >= last["said"] - 2000
    assert found["duration_ms"] >= info.duration * 1000 - 1
    assert not list(tmp_path.glob("recordings/*.wav"))


@pytest.mark.django_db(transaction=True)
async def test_own_live_sessions_are_left_alone_and_forgotten_ones_are_closed(user: User) -> None:
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
    values: dict[str, Any] = {
        "user": user,
        "configuration": {},
        "upstream": "embedded",
        "process": "elsewhere",
    }
    recent = await Session.objects.acreate(started_at=timezone.now(), **values)
    longest = timedelta(seconds=settings.VOICE.max_session_s + settings.VOICE.grace_s + 61)
    forgotten = await Session.objects.acreate(started_at=timezone.now() - longest, **values)
    assert await writer().call(store.repair_unfinished) == 1
    live = {session.id async for session in Session.objects.filter(ended_at=None)}
    assert live == {opened.session_id, recent.id}
    await forgotten.arefresh_from_db()
    assert (forgotten.end_reason, forgotten.recording) == ("server_stopped", "")


@pytest.mark.django_db(transaction=True)
async def test_300_sessions_leave_no_connection_behind(user: User) -> None:
    from django.db import connection

    async def count() -> int:
        return await writer().call(lambda: _connections(connection))

    async def session() -> None:
        opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
        writer().save_item(
            opened.session_id, ItemRecord(item_id="a", previous_item_id=None, type="message", raw={})
        )
        await store.close_session(opened.session_id, reason="hung_up", expected=True, duration_ms=1)

    await session()
    before = await count()
    for _ in range(30):
        await asyncio.gather(*(session() for _ in range(10)))
    assert await count() == before
    await writer().aclose()
    assert await Session.objects.filter(ended_at__isnull=False, item_count=1).acount() == 301


def _connections(connection: Any) -> int:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            return int(cursor.fetchone()[0])
    name = str(connection.settings_dict["NAME"])
    return sum(os.path.realpath(link) == name for link in Path("/proc/self/fd").iterdir())


@pytest.mark.django_db(transaction=True)
async def test_a_session_that_is_taken_over_while_another_process_starts_goes_on(
    user: User, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VOICE = replace(settings.VOICE, data_dir=tmp_path)
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
    sessions = Session.objects.filter(id=opened.session_id)
    await sessions.aupdate(process="gone")
    (tmp_path / "processes" / "gone").touch()
    folder = recordings_folder(tmp_path)
    journal = journal_path(folder, opened.session_id, "user", 5000)

    def taken_meanwhile(folder: Path, session_id: UUID) -> int:
        """Look at the journals as ever, and see to it that the session is another's by then."""
        sessions.update(process=takeover.own_name())
        Journal(journal, AudioFormat.PCM16).close()
        return journals_ms(folder, session_id)

    monkeypatch.setattr(store, "journals_ms", taken_meanwhile)
    assert await writer().call(store.repair_unfinished) == 0
    archiver().wait()
    assert (await sessions.aget()).ended_at is None
    assert journal.exists(), "it is being written"
