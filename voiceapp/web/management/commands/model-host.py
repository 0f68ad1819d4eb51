"""``manage.py model-host``: let a model of one's own answer voice sessions."""

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlencode

import openai
import websockets
from django.conf import settings
from django.core.management import BaseCommand, CommandError

from voiceapp.clients.address import add_server_arguments, given_token, socket_address
from voiceapp.clients.model_host import ModelHost


class Command(BaseCommand):
    """Connect an endpoint to a server and serve until interrupted."""

    help = (
        "Let a model at a Responses- or chat-compatible endpoint answer your conversations. "
        "Needs an API token of yours (manage.py token NAME) in VOICEAPP_TOKEN or --token."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--endpoint", required=True, help="Base URL of the model, such as http://127.0.0.1:11434/v1."
        )
        parser.add_argument("--model", default="default", help="Model that the endpoint shall use.")
        parser.add_argument(
            "--api", choices=("auto", "responses", "chat"), default="auto",
            help="What the endpoint speaks (auto: Responses where it can).",
        )  # fmt: skip
        add_server_arguments(parser)
        parser.add_argument(
            "--thread", default="", help="Id of the one conversation to serve (all of yours)."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; raises ``CommandError`` with a sentence where that cannot be."""
        url = socket_address(options["server"], settings.VOICE.data_dir, "/ws/model-host/")
        token = given_token(options)
        if options["thread"]:
            url += f"?{urlencode({'thread': options['thread']})}"
        key = os.environ.get("OPENAI_API_KEY") or "none"
        try:
            asyncio.run(self._serve(url, token, key, options))
        except KeyboardInterrupt:
            return
        except websockets.InvalidStatus as error:
            status = error.response.status_code
            did = "refused the token" if status == 401 else f"answered with HTTP {status}"
            raise CommandError(f"The server {did}.") from None
        except (websockets.InvalidURI, ValueError) as error:
            raise CommandError(f"The address cannot be used: {error}") from None

    async def _serve(self, url: str, token: str, key: str, options: dict[str, Any]) -> None:
        client = openai.AsyncOpenAI(base_url=options["endpoint"], api_key=key, max_retries=0, timeout=300)
        async with client:
            await self._probe(client)
            await ModelHost(client, options["model"], options["api"], self._tell).run(url, token)

    async def _probe(self, client: openai.AsyncOpenAI) -> None:
        """Say whether the endpoint is there, before somebody's first question finds out."""
        try:
            await client.with_options(timeout=10).models.list()
        except openai.APIConnectionError:
            self._tell(f"{client.base_url} cannot be reached. Requests fail until it can.")
        except openai.APIError:
            # It is there, and not every server lists its models.
            return

    def _tell(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
