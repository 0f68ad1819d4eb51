"""The page that says that there is none keeps no connection to the database, whichever thread makes it."""

from __future__ import annotations

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import AsyncClient

pytestmark = pytest.mark.django_db(transaction=True)


def kept_connection() -> tuple[str, bool]:
    """Return this thread's name, and whether it holds a connection."""
    return threading.current_thread().name, connections["default"].connection is not None


async def test_the_thread_that_makes_the_page_lets_go_of_its_connection(
    async_client: AsyncClient, user: User
) -> None:
    await async_client.aforce_login(user)
    response = await async_client.get("/no/such/page")
    assert response.status_code == 404
    # The page's head depends on who is signed in: it did ask the database.
    assert "Sign out" in response.content.decode()
    pool = sync_to_async(kept_connection, thread_sensitive=False)
    threads = dict(await asyncio.gather(*(pool() for _ in range(8))))
    assert threads
    assert not any(threads.values())
