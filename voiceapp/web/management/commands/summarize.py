"""``manage.py summarize``: titles and summaries for sessions that have none."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand, CommandError

from voiceapp.errors import VoiceAppError
from voiceapp.process import Process
from voiceapp.records.reading.sessions import ended_sessions
from voiceapp.review.worker import write_summary


class Command(BaseCommand):
    """Summarise what is over and was not summarised."""

    help = "Write a title and a summary for each session that is over and has none."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--all", action="store_true", help="Write those anew that there are already.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write them; stops with ``CommandError`` at the first that fails."""
        ids = ended_sessions(without_heading=not options["all"])
        try:
            with Process() as process:
                written = asyncio.run(_write(process, ids))
        except VoiceAppError as error:
            raise CommandError(error.message) from None
        self.stdout.write(f"Summarised {written} session(s).")


async def _write(process: Process, ids: list[UUID]) -> int:
    try:
        return sum([await write_summary(session_id) for session_id in ids])
    finally:
        await process.aclose()
