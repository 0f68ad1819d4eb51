"""``manage.py runserver``: Daphne's, which serves the sockets as well.

Daphne is no installed app for this: it would be imported, with Twisted, by every other command too.
"""

from daphne.management.commands.runserver import Command

__all__ = ["Command"]
