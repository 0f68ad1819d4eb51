"""Writes a title and a summary for every session that ends in this process, one after the other."""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import Final
from uuid import UUID

from voiceapp.assistants.assistant import Thinking
from voiceapp.config import EMBEDDED_MODEL, voice_config
from voiceapp.errors import TextEngineError, VoiceAppError
from voiceapp.records.reading.sessions import SessionToReview, has_title, to_review
from voiceapp.records.store import store
from voiceapp.records.threads import with_database
from voiceapp.review import extractive
from voiceapp.review.remarks import said_in
from voiceapp.review.summary import summarise
from voiceapp.text import providers

logger = logging.getLogger(__name__)

MAX_WAITING: Final = 1_000
"""Sessions that wait for their summary: hours of work; ``manage.py summarize`` makes up for the rest."""
MOST_TITLES: Final = 8
"""Titles that are tried where others have the first."""
TIME_S: Final = 60.0
"""How long one summary may take before the next has its turn."""


class Summaries:
    """The one worker of this process; it lives while there is something to write."""

    def __init__(self) -> None:
        self._waiting: list[UUID] = []
        self._worker: asyncio.Task[None] | None = None

    def add(self, session_id: UUID) -> None:
        """Let a session have its turn."""
        if len(self._waiting) >= MAX_WAITING:
            logger.warning("session %s gets no summary: too many wait for theirs", session_id)
            return
        self._waiting.append(session_id)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work(), name="summaries")

    async def aclose(self) -> None:
        """Stop; what is not written yet is left to ``manage.py summarize``."""
        worker, self._worker = self._worker, None
        self._waiting.clear()
        if worker is not None:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)

    async def drained(self) -> None:
        """Wait until everything that was added is written."""
        if self._worker is not None:
            await asyncio.shield(self._worker)

    async def _work(self) -> None:
        while self._waiting:
            session_id = self._waiting.pop(0)
            try:
                async with asyncio.timeout(TIME_S):
                    await write_summary(session_id)
            except (VoiceAppError, TimeoutError) as error:
                code = error.code if isinstance(error, VoiceAppError) else "timeout"
                logger.warning("session %s has no summary (%s)", session_id, code)
            except Exception:
                # One session's fault must not cost the others theirs.
                logger.exception("session %s has no summary", session_id)


async def write_summary(session_id: UUID) -> bool:
    """Write one session's title and summary; return whether there was anything to write about.

    Raises ``VoiceAppError`` where nobody could write them.
    """
    kept = await with_database(to_review, session_id)
    if kept is None:
        return False
    title, summary = await _summarised(kept)
    said = [one.text for one in said_in(kept.lines) if one.role == "user"]
    title = await with_database(_unlike_others, title, said, kept.user_id, session_id)
    if title or summary:
        await store.save_summary(session_id, title=title, summary=summary)
    return bool(title or summary)


def _unlike_others(title: str, said: list[str], user_id: int, session_id: UUID) -> str:
    """Return the title, or one that says more where other sessions of the user have it; blocks.

    Where the user wanted nothing else, nothing but the day tells the two apart.
    """
    titles = [title, *islice(extractive.titles_besides(title, said), MOST_TITLES)] if title else []
    return next((one for one in titles if not has_title(user_id, one, but=session_id)), title)


async def _summarised(kept: SessionToReview) -> tuple[str, str]:
    """Let whoever thought in the session read it: what was said goes to nobody else."""
    said, began = said_in(kept.lines), kept.began
    if kept.thinking != Thinking.MODEL_HOST.value:
        model = EMBEDDED_MODEL if kept.thinking == Thinking.EMBEDDED.value else ""
        return await summarise(said, await providers.completions(voice_config(), model=model), began)
    try:
        model = providers.HOST_MODEL
        host = await providers.completions(voice_config(), model=model, user_id=kept.user_id)
        return await summarise(said, host, began)
    except TextEngineError:
        # The user's own model is not connected any more.
        embedded = await providers.completions(voice_config(), model=EMBEDDED_MODEL)
        return await summarise(said, embedded, began)
