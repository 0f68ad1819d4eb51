"""``manage.py golden``: a document of the gateway's contract, made by the gateway's own code."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

import msgspec
from django.conf import settings
from django.core.management import BaseCommand, CommandError

from voiceapp.gateway import contract
from voiceapp.gateway.generate import Generation
from voiceapp.process import Process
from voiceapp.types import JsonObject

QUESTION: Final = "What is twelve times twelve?"
# What a reader must take as the same packets, or as none.
COMPATIBILITY_LINES: Final = (
    ": ping",
    "",
    'data:{"text":"no space after the colon"}',
    'data: {"text":"a line that ends with CR and LF"}\r',
    "event: something-new",
    "id: 1",
    "retry: 1000",
)


class Command(BaseCommand):
    """Write the golden document."""

    help = "Write a golden document of the gateway's contract: a request, its answer, and its stream."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--output", type=Path, help="File to write (standard output).")

    def handle(self, *args: Any, output: Path | None, **options: Any) -> None:
        """Write it; raises ``CommandError`` where the file cannot be written."""
        text = json.dumps(asyncio.run(_made()), indent=2, ensure_ascii=False)
        if output is None:
            self.stdout.write(text)
            return
        try:
            output.write_text(f"{text}\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror}.") from None


async def _made() -> JsonObject:
    with Process() as process:
        try:
            return await _document(process)
        finally:
            await process.aclose()


async def _document(process: Process) -> JsonObject:
    # The built-in brain: the same document on every machine, and no service is asked.
    completions = (await process.providers.get(settings.VOICE, embedded=True)).completions
    body: JsonObject = {"messages": [{"role": "user", "content": QUESTION, "cache": False}], "max_tokens": 64}
    request = contract.read_request(body)
    answer = await Generation(request, completions, settings.VOICE).whole()
    packets = [packet async for packet in Generation(request, completions, settings.VOICE).packets()]
    return {
        "version": 1,
        "generate_request": msgspec.to_builtins(request),
        "generate_response": msgspec.to_builtins(answer),
        "stream_frames": [contract.frame(packet) for packet in packets],
        "stream_packets": packets,
        "compatibility_lines": list(COMPATIBILITY_LINES),
    }
