"""Recordings for the audio player, in parts as browsers ask for them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from voiceapp.config import voice_config
from voiceapp.records.reading.sessions import recording_for
from voiceapp.records.recording.archive import journals_ms, recordings_folder

_PIECE_BYTES: Final = 1 << 16
_RANGE: Final = re.compile(r"bytes=(?=.*\d)(\d{0,18})-(\d{0,18})", re.ASCII)


@require_safe
async def recording(request: HttpRequest, session_id: UUID) -> HttpResponseBase:
    """Send a session's recording (FLAC: left the user, right the assistant) to its user or to an admin.

    Honours one ``Range``. Not found for everybody else; 503 while the archive is being made.
    """
    found = await recording_for(await request.auser(), session_id)
    if not found:
        raise Http404
    path = Path(voice_config().data_dir / found)
    if not path.is_relative_to(recordings_folder(voice_config().data_dir)):
        raise Http404
    size = await asyncio.to_thread(_size, path)
    if size is None and await asyncio.to_thread(journals_ms, path.parent, session_id) > 0:
        return HttpResponse(
            "The recording is being prepared.", "text/plain", 503, headers={"Retry-After": "5"}
        )
    if size is None:
        # It may have become ready in this very moment.
        size = await asyncio.to_thread(_size, path)
    if size is None:
        raise Http404
    return _partial(request, path, size)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _partial(request: HttpRequest, path: Path, size: int) -> HttpResponseBase:
    start, end, status = 0, size, 200
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "private, no-cache", "Content-Type": "audio/flac"}
    if asked := _RANGE.fullmatch(request.headers.get("Range", "").strip()):
        first, last = asked.groups()
        if first:
            start, end = int(first), min(size, int(last) + 1 if last else size)
        elif last:
            start = max(0, size - int(last))
        if start >= end:
            return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
        status, headers["Content-Range"] = 206, f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    return StreamingHttpResponse(_pieces(path, start, end), status=status, headers=headers)


async def _pieces(path: Path, start: int, end: int) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        await asyncio.to_thread(file.seek, start)
        while start < end:
            piece = await asyncio.to_thread(file.read, min(_PIECE_BYTES, end - start))
            if not piece:
                break
            start += len(piece)
            yield piece
    finally:
        file.close()
