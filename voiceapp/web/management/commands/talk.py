"""``manage.py talk``: talk with the running server from a shell."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from argparse import ArgumentParser
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from voiceapp.clients.address import server_address
from voiceapp.clients.talk import Talk
from voiceapp.errors import VoiceAppError
from voiceapp.language.zones import zone_of
from voiceapp.protocol.page import SessionStart

USERNAME = "talk"
LOCAL_TIME = Path("/etc/localtime")
"""A link to the file of the machine's time zone, on Linux and macOS."""
_BUTTON = re.compile(r'name="csrfmiddlewaretoken" value="([A-Za-z0-9]+)"')
"""What the page of a sign-in link has its button send along."""
_MAX_PAGE_BYTES = 1_000_000


class Command(BaseCommand):
    """Sign in as a user of its own and hold one conversation."""

    help = (
        "Talk with the running server: play it a sound file in real time, or type. "
        "Prints both sides and the timing of every turn."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("file", nargs="?", type=Path, help="sound file to say (WAV, FLAC, Ogg, MP3 …)")
        parser.add_argument("--text", action="append", default=[], help="text to type; may be repeated")
        parser.add_argument("--out", type=Path, help="write the answers to this WAV file")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
        parser.add_argument(
            "--allow-tools", action="store_true", help="allow every call of a tool that is asked about"
        )
        parser.add_argument("--assistant", help="talk with this assistant (its slug)")
        parser.add_argument("--time-zone", help="your time zone, such as Asia/Tokyo; default: this machine's")
        parser.add_argument(
            "--url",
            help="the server's address, or a sign-in link of it; default: the server on this data folder",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Talk. Exits with 1 where no answer came."""
        file: Path | None = options["file"]
        if file is None and not options["text"]:
            raise CommandError("Give a sound file, or --text, or both.")
        if file is not None and not file.is_file():
            raise CommandError(f"There is no file {file}.")
        url = options["url"]
        address = server_address(url, settings.VOICE.data_dir)
        out: Path | None = options["out"]
        # Found out afterwards, the answers would be lost.
        if out is not None and (out.is_dir() or not out.parent.is_dir()):
            raise CommandError(f"{out} cannot be written: name a file in a folder that exists.")
        cookie = cookie_by_link(url) if url and "/signin/" in url else cookie_of_own_user()
        quiet = options["json"]
        talk = Talk(
            lambda line: None if quiet else self.stdout.write(line), allow_tools=options["allow_tools"]
        )
        try:
            asyncio.run(
                talk.run(
                    address,
                    cookie,
                    file=file,
                    texts=options["text"],
                    start=SessionStart(
                        assistant=options["assistant"] or None,
                        time_zone=options["time_zone"] or machine_zone(),
                    ),
                )
            )
        except* VoiceAppError as errors:
            raise CommandError(str(errors.exceptions[0])) from errors
        except* KeyboardInterrupt:
            raise CommandError("Interrupted.") from None
        self._finish(talk, out, as_json=quiet)

    def _finish(self, talk: Talk, out: Path | None, *, as_json: bool) -> None:
        if out is not None:
            try:
                out.write_bytes(talk.reply_wav())
            except OSError as error:
                raise CommandError(f"{out} cannot be written: {error.strerror}.") from error
        turns = [turn.public() for turn in talk.turns]
        if as_json:
            result = {
                "session_id": talk.session_id,
                "ended": talk.ended.get("reason"),
                "turns": turns,
                "reply_ms": talk.reply_ms(),
                "notices": [notice["code"] for notice in talk.notices],
            }
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        else:
            for number, turn in enumerate(talk.turns, 1):
                if turn.first_audio_ms is not None:
                    whole = turn.from_last_word_ms
                    self.stdout.write(
                        f"Turn {number}: first audio after {turn.first_audio_ms} ms"
                        + (f", {whole} ms after the last word" if whole is not None else "")
                    )
        message = talk.ended.get("message")
        if talk.ended.get("reason") not in ("hung_up", "ended_by_assistant"):
            notices = [notice["message"] for notice in talk.notices if notice["level"] == "error"]
            raise CommandError(" ".join(dict.fromkeys([*notices, message or "The server closed the line."])))
        if not any(turn["assistant"] for turn in turns):
            errors = [notice["message"] for notice in talk.notices if notice["level"] == "error"]
            raise CommandError(errors[-1] if errors else "No answer came.")


def machine_zone(link: Path = LOCAL_TIME) -> str | None:
    """Return the name of this machine's time zone, ``None`` where it does not tell.

    ``TZ`` tells nothing here: Django sets it.
    """
    _, found, name = str(link.resolve()).partition("/zoneinfo/")
    return name if found and zone_of(name) else None


def cookie_of_own_user() -> str:
    """Sign the user ``talk`` in through the database; return the cookie."""
    try:
        user, _ = get_user_model().objects.get_or_create(username=USERNAME)
    except DatabaseError as error:
        raise CommandError(
            "The database of this data folder cannot be used. Give a sign-in link with --url."
        ) from error
    if not user.password:
        user.set_unusable_password()
        user.save()
    login = SessionStore()
    login[SESSION_KEY] = str(user.pk)
    login[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    login[HASH_SESSION_KEY] = user.get_session_auth_hash()
    login.set_expiry(3600)
    login.create()
    return f"{settings.SESSION_COOKIE_NAME}={login.session_key}"


def cookie_by_link(link: str) -> str:
    """Use a one-time sign-in link; return the cookies that it gave."""
    cookies = CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    try:
        with opener.open(link, timeout=10) as page:
            button = _BUTTON.search(page.read(_MAX_PAGE_BYTES).decode("utf-8", "replace"))
            address = page.url
        if "/signin/" not in address or button is None:
            raise CommandError("The sign-in link does not work any more.")
        pressed = urllib.parse.urlencode({"csrfmiddlewaretoken": button[1]}).encode()
        # Over https, Django wants to know from where the button was pressed.
        opener.addheaders.append(("Referer", address))
        with opener.open(address, pressed, timeout=10) as page:
            if "/login/" in page.url:
                raise CommandError("The sign-in link does not work any more.")
    except (urllib.error.URLError, OSError) as error:
        raise CommandError(f"The sign-in link does not work ({error}).") from error
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies)
