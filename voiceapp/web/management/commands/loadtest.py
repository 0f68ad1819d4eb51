"""``manage.py loadtest``: compare the relay with a bare one on this machine."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from voiceapp.loadtest.figures import Plan
from voiceapp.loadtest.measure import measure


class Command(BaseCommand):
    """See the module; all traffic stays on the loopback interface, and the run ends by itself."""

    help = "Measure the relay against a bare asyncio relay: CPU, delay, sessions per core, memory."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the size of the run."""
        parser.add_argument("--json", action="store_true", help="print the figures as JSON only")
        parser.add_argument(
            "--sessions",
            type=int,
            default=60,
            help="sessions of the steady comparison, where they are carried",
        )
        parser.add_argument("--rounds", type=int, default=3, help="rounds, in alternating order")
        parser.add_argument("--no-search", action="store_true", help="leave out the search for the limit")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print the figures that there are."""
        if not 1 <= options["sessions"] <= 500 or not 1 <= options["rounds"] <= 20:
            raise CommandError("--sessions must be from 1 to 500 and --rounds from 1 to 20.")

        def say(line: str) -> None:
            if not options["json"]:
                self.stderr.write(line)

        plan = Plan(sessions=options["sessions"], rounds=options["rounds"], search=not options["no_search"])
        result = measure(say, plan)
        self.stdout.write(json.dumps(result, indent=None if options["json"] else 2))
        if "ratio_cpu_per_frame" not in result:
            raise CommandError("The relays could not be compared: the notes say why.")
