"""``manage.py up``: from an empty folder to a page that one can talk to."""

from __future__ import annotations

import os
import signal
import socket
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import BaseCommand, CommandError, call_command

from voiceapp.records.setup.preparing import preparing
from voiceapp.records.store.store import repair_unfinished
from voiceapp.web.server import Server, address_for_people, allow_many_files, listen
from voiceapp.web.signin import first_administrator, make_token
from voiceapp.web.static_files import collect

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Command(BaseCommand):
    """Prepare the data folder and serve the site until it is interrupted."""

    help = "Prepare everything and serve the site; prints a one-time sign-in link when it is ready."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--host", default="127.0.0.1", help="Address to listen on (127.0.0.1).")
        parser.add_argument(
            "--port", default=8000, type=int, help="Port to listen on (8000); 0 takes a free one."
        )

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        """Serve. Raises ``CommandError`` with a sentence where that cannot be."""
        # What this process writes from here on, transcripts and recordings among it, is its owner's only.
        os.umask(0o077)
        # First of all, so that a taken port is told at once.
        listener = listen(host, port)
        # It brings the whole product, which takes seconds to import.
        from voiceapp.process import Process

        with Process():
            self._serve(listener, host)

    def _serve(self, listener: socket.socket, host: str) -> None:
        with preparing(settings.VOICE.data_dir):
            call_command("migrate", interactive=False, verbosity=0)
            collect()
            repaired = repair_unfinished()
        if repaired:
            self.stdout.write(f"Closed {repaired} session(s) that the last server left open.")
        if host not in (*LOOPBACK, "0.0.0.0", "::", *settings.ALLOWED_HOSTS):  # noqa: S104
            settings.ALLOWED_HOSTS.append(host)
        if host not in LOOPBACK and not settings.VOICE.https:
            self.stdout.write("Note: over plain HTTP, browsers give a page the microphone on localhost only.")
        url = address_for_people(listener, https=settings.VOICE.https)
        token = make_token(administrator())
        allow_many_files()
        # When it is done, Uvicorn raises the signal that ended it once more: leave in an orderly way.
        signal.signal(signal.SIGTERM, _leave)
        server = Server(url, lambda: self._announce(f"{url}/signin/{token}"))
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return
        if not server.started:
            raise CommandError("The server could not start; the lines above say why.")

    def _announce(self, link: str) -> None:
        self.stdout.write(f"Ready: {link}")
        self.stdout.flush()


def administrator() -> User:
    """Return the administrator whom the link signs in; make ``admin`` where there is none.

    ``admin`` has no password until one is set (``manage.py changepassword admin``).
    """
    found = first_administrator()
    if found is not None:
        return found
    admin, _ = User.objects.get_or_create(username="admin")
    admin.is_active = admin.is_staff = admin.is_superuser = True
    if not admin.password:
        admin.set_unusable_password()
    admin.save()
    return admin


def _leave(*_: object) -> None:
    sys.exit(0)
