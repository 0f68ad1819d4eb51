"""The records' door: the only code that writes sessions and what belongs to them."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from voiceapp.assistants.assistant import AssistantConfig, Thinking
from voiceapp.config import UpstreamKind, voice_config
from voiceapp.conversation.records import ItemRecord, Record, ResponseRecord, ToolCallRecord
from voiceapp.datafolder.processes import of_this_process
from voiceapp.errors import Refusal
from voiceapp.protocol.page import CloseCode
from voiceapp.records.display import TITLE_LENGTH
from voiceapp.records.models import (
    Assistant,
    Evaluation,
    Item,
    Session,
)
from voiceapp.records.recording.archive import journals_ms, recordings_folder
from voiceapp.records.recording.recorder import repair as repair_recordings
from voiceapp.records.store import history, notes
from voiceapp.records.store.entries import MAX_USED, MODEL_LENGTH, OpenedSession
from voiceapp.records.store.rows import storable
from voiceapp.records.store.writer import StoreUnavailable, writer

_ANYBODYS = Q()


def save(session_id: UUID, record: Record) -> None:
    """Keep an item, a response or a call as it is now; never blocks. Raises ``StoreFull``."""
    match record:
        case ItemRecord():
            writer().save_item(session_id, record)
        case ResponseRecord():
            writer().save_response(session_id, record)
        case ToolCallRecord():
            writer().save_tool_call(session_id, record)


async def open_session(
    *,
    user_id: int,
    assistant_slug: str | None,
    upstream: str,
    voice: str | None = None,
    continues: UUID | None = None,
    time_zone: str = "",
) -> OpenedSession:
    """Begin a session of ``user_id`` with the named assistant, or with the first one.

    ``voice`` is one of those that the assistant offers; ``continues`` is an earlier session of the same user,
    whose assistant speaks on where none is named, and whose ``time_zone`` counts where none is given. Raises
    ``VoiceAppError`` with the code ``assistant_unknown``, ``voice_unknown`` or ``session_not_found``, or
    ``StoreUnavailable``.
    """
    session_id, started_at = uuid4(), timezone.now()
    opening = _Opening(user_id, assistant_slug, upstream, voice, continues, time_zone)
    try:
        return await writer().call(lambda: _open(session_id, started_at, opening))
    except (asyncio.CancelledError, StoreUnavailable):
        # It may yet be opened, and then nobody knows of it.
        never_begun(session_id)
        raise


def never_begun(session_id: UUID) -> None:
    """Close a session that was opened and could not begin, as soon as may be."""
    ending = _ending(timezone.now(), "never_begun", 0)
    writer().post(lambda: _close(session_id, ending))


async def check_opening(
    user_id: int, *, assistant_slug: str | None, voice: str | None, continues: UUID | None
) -> None:
    """Raise what ``open_session`` would, and open nothing."""
    opening = _Opening(user_id, assistant_slug, "", voice, continues)
    await writer().call(lambda: _chosen(opening))


class _Opening(NamedTuple):
    user_id: int
    slug: str | None
    upstream: str
    voice: str | None
    continues: UUID | None
    time_zone: str = ""


def _open(session_id: UUID, started_at: datetime, opening: _Opening) -> OpenedSession:
    before, assistant, config = _chosen(opening)
    session = Session.objects.create(
        id=session_id,
        user_id=opening.user_id,
        assistant=assistant,
        configuration=msgspec.to_builtins(config.without_secrets()),
        upstream=opening.upstream if config.thinking is Thinking.AS_SET else UpstreamKind.EMBEDDED.value,
        process=of_this_process(voice_config().data_dir).name(),
        started_at=started_at,
        continued_from=before,
        time_zone=opening.time_zone or (before.time_zone if before else ""),
    )
    earlier = () if before is None else history.passages(before)
    return OpenedSession(
        session_id=session.id, assistant=config, earlier=earlier, time_zone=session.time_zone
    )


def _chosen(opening: _Opening) -> tuple[Session | None, Assistant, AssistantConfig]:
    before = None if opening.continues is None else history.own_session(opening.continues, opening.user_id)
    assistant = _assistant(opening.slug, before)
    return before, assistant, _with_voice(assistant.config(), opening.voice)


def _assistant(slug: str | None, before: Session | None) -> Assistant:
    offered = Assistant.objects.filter(enabled=True)
    if slug:
        # PostgreSQL refuses to be asked for text with a NUL.
        found = offered.filter(slug=slug.replace("\0", "\u2400")).first()
    else:
        same = offered.filter(id=before.assistant_id).first() if before and before.assistant_id else None
        found = same or offered.first()
    if found is None:
        raise Refusal("assistant_unknown", "There is no such assistant.", close_code=CloseCode.NOT_FOUND)
    return found


def _with_voice(config: AssistantConfig, voice: str | None) -> AssistantConfig:
    if voice is None or voice == config.voice:
        return config
    if voice not in config.offered_voices:
        raise Refusal("voice_unknown", "This assistant does not offer that voice.")
    return msgspec.structs.replace(config, voice=voice)


async def close_session(
    session_id: UUID,
    *,
    reason: str,
    expected: bool,
    duration_ms: int,
    recording: Path | None = None,
    code: str = "",
    message: str = "",
) -> None:
    """Mark a session as ended, after all that was saved of it is committed.

    ``code`` is the cause behind the ``reason``, ``message`` the sentence that its user was told.

    The first end counts: closing again changes nothing, nor does closing one that another process has taken
    over.
    Raises ``StoreUnavailable``; the session is closed all the same once the database is back.
    """
    values: dict[str, Any] = {
        "ended_at": timezone.now(),
        "end_reason": reason[:64],
        "end_code": storable(code)[:64],
        "end_message": storable(message)[:500],
        "expected": expected,
        "duration_ms": max(0, duration_ms),
        "recording": _relative(recording),
    }
    if recording is None:
        # It may have one of an earlier process.
        del values["recording"]
    mine = Q(process=of_this_process(voice_config().data_dir).name())
    await writer().call(lambda: _close(session_id, values, mine))


def _close(session_id: UUID, values: dict[str, Any], owner: Q = _ANYBODYS) -> int:
    """Close a session, if it is open and is its ``owner``'s; return how many that are."""
    with transaction.atomic():
        # Often enough, and nobody waits for it.
        notes.erase_deleted()
        count = Item.objects.filter(session_id=session_id).count()
        return Session.objects.filter(owner, id=session_id, ended_at=None).update(item_count=count, **values)


def _relative(recording: Path | None) -> str:
    if recording is None:
        return ""
    data_dir = voice_config().data_dir
    return str(recording.relative_to(data_dir) if recording.is_relative_to(data_dir) else recording)


async def save_summary(session_id: UUID, *, title: str, summary: str) -> None:
    """Keep a session's title and summary; raises ``StoreUnavailable``."""
    title, summary = (storable(text.replace("\0", "")) for text in (title, summary))
    kept = {"heading": title[:TITLE_LENGTH], "summary": summary}
    await writer().call(lambda: Session.objects.filter(id=session_id).update(**kept))


def save_evaluation(session_id: UUID, user_id: int, judged: dict[str, Any]) -> None:
    """Keep an evaluation, see the table; blocks."""
    kept = storable(judged)
    kept["model"] = kept["model"][:MODEL_LENGTH]
    for name in ("tokens_in", "tokens_out"):
        kept[name] = max(0, min(kept[name], MAX_USED))
    Evaluation.objects.create(session_id=session_id, asked_by_id=user_id, **kept)


def repair_unfinished() -> int:
    """Close what processes that are gone left open, and archive their recordings; return the sessions closed.

    Sessions of other processes that live are left alone. Blocks; for use before the server starts.
    """
    ownership = of_this_process(voice_config().data_dir)
    gone = ownership.dead()
    oldest = timezone.now() - timedelta(seconds=voice_config().max_session_s + voice_config().grace_s + 60)
    left = Session.objects.filter(Q(process__in=gone) | Q(started_at__lt=oldest), ended_at=None)
    closed = 0
    folder = recordings_folder(voice_config().data_dir)
    for session in left:
        last_ms = session.items.aggregate(last=Max("ended_ms"))["last"] or 0
        duration_ms = max(last_ms, journals_ms(folder, session.id))
        # Its page may have come back meanwhile, to a process that runs.
        owner = Q(process=session.process)
        closed += _close(session.id, _ending(session.started_at, "server_stopped", duration_ms), owner)
    archives = repair_recordings(folder, _live)
    for session_id, path in archives.items():
        Session.objects.filter(id=session_id, recording="").update(recording=_relative(path))
    ownership.forget(gone)
    notes.erase_deleted()
    return closed


def _live(session_ids: set[UUID]) -> set[UUID]:
    return set(Session.objects.filter(id__in=session_ids, ended_at=None).values_list("id", flat=True))


def _ending(started_at: datetime, reason: str, duration_ms: int) -> dict[str, Any]:
    """Return the columns of a session that nobody was there to end."""
    return {
        "ended_at": started_at + timedelta(milliseconds=duration_ms),
        "end_reason": reason,
        "expected": False,
        "duration_ms": duration_ms,
    }


def assistants_for_page() -> list[AssistantConfig]:
    """Return the assistants that the page offers, in their order, without HTTP tools; blocks."""
    return [assistant.config(with_http_tools=False) for assistant in Assistant.objects.filter(enabled=True)]


async def assistants_for_sessions() -> list[AssistantConfig]:
    """Return the same assistants as sessions run with them."""
    offered = Assistant.objects.filter(enabled=True).prefetch_related("http_tools")
    return await writer().call(lambda: [assistant.config() for assistant in offered])


async def change_assistant(session_id: UUID, config: AssistantConfig) -> None:
    """Let a session go on with another assistant; the tool's call tells when that was."""
    values = {"configuration": msgspec.to_builtins(config.without_secrets())}
    await writer().call(lambda: _change_assistant(session_id, config.slug, values))


def _change_assistant(session_id: UUID, slug: str, values: dict[str, Any]) -> None:
    assistant = Assistant.objects.filter(slug=slug).first()
    Session.objects.filter(id=session_id, ended_at=None).update(assistant=assistant, **values)
