"""Recordings on the pages: who may hear them, in which parts, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from tests.parts.kept_sessions import kept
from voiceapp.records.models import Session
from voiceapp.records.recording.archive import (
    archive_path,
    journal_path,
    journals_ms,
    make_archive,
    recordings_folder,
)
from voiceapp.web import recordings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(client: Client, user: User) -> Client:
    """A browser in which the user is signed in."""
    client.force_login(user)
    return client


@pytest.fixture
def recording(user: User) -> tuple[UUID, bytes]:
    """A session with a recording of 200,000 different bytes."""
    folder = recordings_folder(settings.VOICE.data_dir)
    folder.mkdir(exist_ok=True)
    session_id = kept(user, recording=folder / "x.flac")
    path = archive_path(folder, session_id)
    Session.objects.filter(id=session_id).update(recording=str(path.relative_to(settings.VOICE.data_dir)))
    data = bytes(range(250)) * 800
    path.write_bytes(data)
    return session_id, data


async def fetched(client: AsyncClient, session_id: UUID, **headers: str) -> tuple[Any, bytes]:
    response: Any = await client.get(f"/sessions/{session_id}/recording.flac", headers=headers)
    body = b"".join([piece async for piece in response]) if response.streaming else response.content
    return response, body


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("", 200, slice(0, None)),
        ("bytes=0-", 206, slice(0, None)),
        ("bytes=100000-100009", 206, slice(100_000, 100_010)),
        ("bytes=199990-999999", 206, slice(199_990, None)),
        ("bytes=-10", 206, slice(-10, None)),
        ("bytes=0-1,5-6", 200, slice(0, None)),
        ("bytes=200000-", 416, slice(0, 0)),
        ("bytes=9-3", 416, slice(0, 0)),
        ("bytes=-", 200, slice(0, None)),
        (f"bytes={'9' * 5000}-", 200, slice(0, None)),
    ],
)
async def test_a_recording_is_sent_in_the_part_that_was_asked_for(
    async_client: AsyncClient, user: User, recording: tuple[UUID, bytes], asked: str, status: int, part: slice
) -> None:
    session_id, data = recording
    await async_client.aforce_login(user)
    response, body = await fetched(async_client, session_id, **({"Range": asked} if asked else {}))
    assert (response.status_code, body) == (status, data[part])
    if status == 206:
        start, stop, _ = part.indices(len(data))
        assert response.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{len(data)}"
    if status != 416:
        assert response.headers["Content-Length"] == str(len(body))
        assert response.headers["Content-Type"] == "audio/flac"


async def test_who_may_hear_a_recording(async_client: AsyncClient, recording: tuple[UUID, bytes]) -> None:
    session_id, _ = recording
    assert (await fetched(async_client, session_id))[0].status_code == 404
    for name, flags, status in (
        ("eve", {}, 404),
        ("clerk", {"is_staff": True}, 404),
        ("root", {"is_staff": True, "is_superuser": True}, 200),
    ):
        await async_client.aforce_login(await User.objects.acreate(username=name, **flags))
        assert (await fetched(async_client, session_id))[0].status_code == status


def journals_that_are_archived_now(folder: Path, session_id: UUID) -> int:
    make_archive(folder, session_id, 0)
    return journals_ms(folder, session_id)


async def test_a_recording_that_is_not_ready(
    async_client: AsyncClient, user: User, recording: tuple[UUID, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id, _ = recording
    folder = recordings_folder(settings.VOICE.data_dir)
    archive_path(folder, session_id).unlink()
    await async_client.aforce_login(user)
    assert (await fetched(async_client, session_id))[0].status_code == 404
    from voiceapp.audio.formats import AudioFormat
    from voiceapp.records.recording.journal import Journal

    journal = Journal(journal_path(folder, session_id, "user"), AudioFormat.PCM16)
    journal.write(0, bytes(4800))
    journal.close()
    response, _ = await fetched(async_client, session_id)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    monkeypatch.setattr(recordings, "journals_ms", journals_that_are_archived_now)
    assert (await fetched(async_client, session_id))[0].status_code == 200
    await Session.objects.aupdate(recording="../secret_key")
    assert (await fetched(async_client, session_id))[0].status_code == 404


def test_a_kept_session_offers_its_recording(page: Client, recording: tuple[UUID, bytes]) -> None:
    session_id, _ = recording
    shown = page.get(f"/sessions/{session_id}/").content.decode()
    assert f'src="/sessions/{session_id}/recording.flac"' in shown
    assert f'href="/sessions/{session_id}/recording.flac" download="conversation 20' in shown
    assert 'preload="metadata"' in shown
