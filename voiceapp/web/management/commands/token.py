"""``manage.py token NAME``: a key for programs that use the text engine."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management import BaseCommand, CommandError

from voiceapp.errors import VoiceAppError
from voiceapp.records.store.tokens import all_tokens, delete_token, make_token, replace_token
from voiceapp.web.signin import first_administrator


class Command(BaseCommand):
    """Make, list, replace and revoke API tokens."""

    help = "Make an API token and print it, once. It opens the text gateway, /nnrp and /ws/model-host/."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("name", nargs="?", help="What the token is for.")
        parser.add_argument("--user", help="Whose token it is (the first administrator).")
        parser.add_argument("--list", action="store_true", help="List the tokens.")
        parser.add_argument(
            "--replace", action="store_true", help="Where there is a token NAME, give it a new text."
        )
        parser.add_argument(
            "--revoke", "--delete", action="store_true", help="Delete the token NAME: it opens nothing more."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do as asked; raises ``CommandError`` with a sentence where that cannot be."""
        if options["list"]:
            for token in all_tokens():
                state = "" if token.enabled else "  off"
                self.stdout.write(f"{token.name}  {token.hint}…  {token.user.get_username()}{state}")
            return
        name = (options["name"] or "").strip()
        if not name or len(name) > 100:
            raise CommandError("Give the token a name of up to 100 characters: manage.py token NAME")
        user = _user(options["user"])
        if options["revoke"]:
            if not delete_token(user, name):
                raise CommandError(f"{user.get_username()} has no token named {name!r}.")
            self.stdout.write(f"Deleted {name}.")
            return
        if options["replace"] and (replaced := replace_token(user, name)):
            self.stdout.write(replaced)
            return
        try:
            _, text = make_token(user, name)
        except VoiceAppError as error:
            more = "Its text cannot be told again: --replace gives it a new one, --revoke deletes it."
            raise CommandError(f"{error.message} {more}") from None
        self.stdout.write(text)


def _user(name: str | None) -> User:
    if name:
        found = User.objects.filter(username=name, is_active=True).first()
        if found is None:
            raise CommandError(f"There is no active user named {name!r}.")
        return found
    found = first_administrator()
    if found is None:
        raise CommandError("There is no administrator yet: run manage.py up once, or name a --user.")
    return found
