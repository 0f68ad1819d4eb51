"""``manage.py signin [USER]``: a new sign-in link, for who has none left and no password."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError

from voiceapp.clients.address import server_address
from voiceapp.web.signin import administrators, make_token, make_user

LISTED: Final = 10
"""Names that are told where the one that was given is none."""


class Command(BaseCommand):
    """Print a one-time sign-in link for a user of the server on this data folder."""

    help = "Print a new sign-in link, which works once, within a day; earlier ones of the user stop working."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "user", nargs="?", help="Whom it signs in (the administrator, where there is one)."
        )
        parser.add_argument(
            "--create",
            action="store_true",
            help="Make the user where there is none: an administrator, if there is no other.",
        )
        parser.add_argument("--url", help="The site's address (the server that runs on this data folder).")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the link; raises ``CommandError`` with a sentence where there can be none."""
        address = server_address(options["url"], settings.VOICE.data_dir)
        try:
            user = _chosen(options["user"], create=options["create"])
            token = make_token(user)
        except DatabaseError:
            raise CommandError(
                "The database cannot be used. Run manage.py up once: it prepares it."
            ) from None
        self.stdout.write(f"{address}/signin/{token}")


def _chosen(name: str | None, *, create: bool) -> User:
    if name is None:
        found = list(administrators()[: LISTED + 1])
        if not found:
            raise CommandError("There is no administrator yet: manage.py up makes one, and prints a link.")
        if len(found) > 1:
            raise CommandError(f"There are several administrators: {_listed(found)}. Name one of them.")
        return found[0]
    user = User.objects.filter(username=name).first()
    if user is None and not create:
        others = list(User.objects.filter(is_active=True).order_by("pk")[: LISTED + 1])
        known = f" There is {_listed(others)}." if others else ""
        raise CommandError(f"There is no user named {name!r}.{known} --create makes one.")
    if user is not None and not user.is_active:
        raise CommandError(f"{name!r} is switched off. An administrator can switch the user on at /admin/.")
    try:
        return user or make_user(name)
    except ValidationError as error:
        raise CommandError(f"{name!r} is no user name: {' '.join(error.messages)}") from None


def _listed(users: list[User]) -> str:
    names = ", ".join(user.get_username() for user in users[:LISTED])
    return f"{names} and others" if len(users) > LISTED else names
