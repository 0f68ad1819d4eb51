"""Fixtures that the tests of several modules use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

_DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "django_db_serialized_rollback"}


@pytest.fixture(autouse=True)
def _threads_let_go_of_the_database(request: pytest.FixtureRequest) -> Iterator[None]:
    """End the writing thread, and other threads' connections, before the test's database is emptied."""
    if request.node.get_closest_marker("django_db") or _DATABASE_FIXTURES & set(request.fixturenames):
        request.getfixturevalue("_django_db_helper")
    yield
    from asgiref.sync import SyncToAsync
    from django.db import connections

    from voiceapp.records import store

    store.stop_writer()
    # The thread in which asyncio code reached the database keeps its connection otherwise.
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture
def user(transactional_db: None) -> User:
    """A user without rights, visible to other threads."""
    from django.contrib.auth.models import User

    return User.objects.create_user("ada", password="correct horse")


@pytest.fixture
def admin_client(transactional_db: None) -> Client:
    """A browser in which an administrator is signed in."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.create_superuser("root", password="battery staple"))
    return client
