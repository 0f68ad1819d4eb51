"""How the database is emptied after a test that wrote to it.

Django truncates all tables and then makes every content type and permission again, which takes longer than
many a test. Here they stay as the migrations left them, other rows are deleted, and the first assistant comes
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management.commands import flush

from voiceapp.records.setup.seeding import seed_assistant

KEPT = {"django_content_type", "auth_permission"}
"""Tables of which only migrations change the rows."""


@contextmanager
def quick_emptying() -> Iterator[None]:
    """Empty the database this way for as long as the context lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", _statements)
        patch.setattr(flush, "emit_post_migrate_signal", _seed)
        yield


def _statements(style: Any, connection: Any, **options: Any) -> list[str]:
    # In any order: the foreign keys are checked at the end of the transaction.
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return [f"DELETE FROM {connection.ops.quote_name(name)}" for name in names if name not in KEPT]


def _seed(verbosity: int, interactive: bool, db: str, **options: Any) -> None:
    seed_assistant(using=db)
