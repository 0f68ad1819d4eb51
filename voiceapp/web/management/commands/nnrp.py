"""``manage.py nnrp``: ask the text engine of a running server over NNRP."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from voiceapp.clients.address import add_server_arguments, given_token, socket_address
from voiceapp.clients.nnrp import OperationDropped, connect
from voiceapp.errors import VoiceAppError
from voiceapp.nnrp.backing import DEFAULT_MODEL
from voiceapp.nnrp.consumer import PATH
from voiceapp.nnrp.profile import CANCELLED, COMPLETED, ERROR
from voiceapp.types import JsonObject


class Command(BaseCommand):
    """Send one prompt and print what comes."""

    help = (
        "Ask the text engine of a running server over NNRP and print the answer as it comes. "
        "Needs an API token of yours (manage.py token NAME) in VOICEAPP_TOKEN or --token."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("prompt", help="What to ask.")
        add_server_arguments(parser)
        parser.add_argument("--model", default=DEFAULT_MODEL, help="Model that shall answer.")
        parser.add_argument("--tools", type=Path, help="JSON file with the `tools` of a chat request.")
        parser.add_argument(
            "--cancel-after", type=int, default=0, metavar="N", help="Cancel after so many events."
        )
        parser.add_argument(
            "--timeout-ms", type=int, default=0, metavar="MS", help="Longest time it may take."
        )
        parser.add_argument("--json", action="store_true", help="Print every event, one JSON object a line.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask. Exits with 1 where no answer came."""
        url = socket_address(options["server"], settings.VOICE.data_dir, PATH)
        token = given_token(options)
        body: JsonObject = {
            "model": options["model"],
            "messages": [{"role": "user", "content": options["prompt"]}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if options["tools"]:
            body["tools"] = _tools(options["tools"])
        options_given = {"timeout_ms": options["timeout_ms"], "cancel_after_events": options["cancel_after"]}
        policy = {name: value for name, value in options_given.items() if value}
        try:
            last = asyncio.run(self._ask(url, token, body, policy, as_json=options["json"]))
        except KeyboardInterrupt:
            raise CommandError("Interrupted.") from None
        except VoiceAppError as error:
            raise CommandError(error.message) from error
        except OperationDropped as error:
            raise CommandError(str(error)) from error
        if last["type"] == ERROR:
            raise CommandError(f"{last['error']['code']}: {last['error']['message']}")

    async def _ask(
        self, url: str, token: str, body: JsonObject, policy: JsonObject, *, as_json: bool
    ) -> JsonObject:
        last: JsonObject = {}
        async with connect(url, token) as client:
            session = await client.open_session()
            running = await session.start(body, policy=policy)
            async for last in running.events():
                if as_json:
                    self._tell(json.dumps(last, ensure_ascii=False) + "\n")
                else:
                    self._show(last)
            await session.close()
        return last

    def _show(self, event: JsonObject) -> None:
        match event["type"]:
            case "response.output_text.delta":
                self._tell(event["delta"])
            case "response.tool_call.started":
                self._tell(f"\n[calls {event['name']} ")
            case "response.tool_call.delta":
                self._tell(event["arguments_delta"])
            case "response.tool_call.completed":
                self._tell("]")
            case "response.tool_call.error":
                self._tell(f" – {event['error']['message']}]")
            case "response.usage":
                usage = event["usage"]
                counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
                self._tell("\n({} tokens in, {} out)".format(*counts))
            case "response.cancelled":
                self._tell(f"\n(cancelled: {event['reason']})\n")
            case kind if kind in (COMPLETED, ERROR, CANCELLED):
                self._tell("\n")

    def _tell(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def _tools(path: Path) -> list[Any]:
    try:
        tools = json.loads(path.read_text())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError:
        tools = None
    if not isinstance(tools, list):
        raise CommandError(f"{path} must hold a JSON list, the `tools` of a chat request.")
    return tools
