"""Fixtures that the tests of several modules use."""

from __future__ import annotations

import gc
import importlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.parts.clock import DrivenLoop
from tests.parts.examples import examples
from tests.parts.places import ROOT
from tests.parts.waits import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    from django.contrib.auth.models import User
    from django.test import Client

    from tests.parts.engine_server import EngineHere, EngineServer
    from tests.parts.http_service import ShopService
    from tests.parts.page import Talk
    from voiceapp.process import Process

_DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "django_db_serialized_rollback"}


# How long an example may take depends on the machine.
hypothesis.settings.register_profile(
    "any machine",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any machine")


def pytest_asyncio_loop_factories() -> dict[str, type[DrivenLoop]]:
    """Give every test a clock that it can put forward."""
    return {"driven": DrivenLoop}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the test modules from another end than the workers beside this one do.

    In a fresh clone each file is compiled once, by who comes to it first, and what the others have compiled
    need not be. What cannot be imported is told when it is collected.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    modules = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
    modules = [path for path in modules if path.parts[1] not in ("browser", "sdks", "benchmarks")]
    place = int(worker["workerid"].removeprefix("gw")) * len(modules) // worker["workercount"]
    for path in modules[place:]:
        with suppress(Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules that take longest: none of them is left to run alone when all else is done."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Keep what is loaded by now out of the collector's way: it would walk all tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _what_costs_much_is_done_once() -> Iterator[None]:
    from tests.parts.emptying import quick_emptying
    from tests.parts.static_files import listed_once

    with quick_emptying(), listed_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def process() -> Iterator[Process]:
    """The process in which all tests run; what one must not share with others is given to it anew."""
    from voiceapp.process import Process

    with Process() as running:
        yield running


@pytest.fixture(autouse=True)
def _a_writer_of_its_own(process: Process, request: pytest.FixtureRequest) -> Iterator[None]:
    """Give a test a writer and a memory of tokens, and let go of the database before it is emptied."""
    if request.node.get_closest_marker("django_db") or _DATABASE_FIXTURES & set(request.fixturenames):
        request.getfixturevalue("_django_db_helper")
    from asgiref.sync import SyncToAsync
    from django.db import connections

    from voiceapp.records.store.tokens import KnownTokens, known_tokens
    from voiceapp.records.store.writer import Writer, writer

    with writer.use(Writer()) as own, known_tokens.use(KnownTokens()):
        yield
        own.stop()
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


@pytest.fixture
async def signed_in(transactional_db: None) -> AsyncIterator[dict[str, Any]]:
    """What a signed-in user's page sends with its socket; its sessions end with the test."""
    from tests.parts.page import scope_of
    from voiceapp.relay.process.sessions import LiveSessions, sessions

    with sessions.use(LiveSessions()) as own:
        yield await scope_of("ada")
        await own.drain()


@pytest.fixture
def talking(settings: Any, signed_in: dict[str, Any], tmp_path: Path) -> Talk:
    """A context manager: a page that talks with a scripted service."""
    from tests.parts.page import talk_with

    return talk_with(settings, signed_in, tmp_path)


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Log nothing: pytest keeps what is logged, with its traceback."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def toolbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Tools for one test: a gate that opens when told, and what each was called with."""
    from tests.parts.gates import gated_tools

    tools, seen = gated_tools()
    monkeypatch.setattr("voiceapp.relay.session.live.registry", tools)
    yield seen
    seen["unblock"].set()


@pytest.fixture
async def handy(transactional_db: None) -> dict[str, str]:
    """How a page asks for an assistant that uses the toolbox."""
    from voiceapp.records.models import Assistant

    await Assistant.objects.acreate(slug="handy", name="Handy", tools=["wait", "block"])
    return {"assistant": "handy"}


@pytest.fixture
async def able(transactional_db: None) -> dict[str, str]:
    """Starts a session with an assistant who has all the tools that come along; there is one more, Grace."""
    from voiceapp.records.models import Assistant
    from voiceapp.records.setup.seeding import TOOLS

    await Assistant.objects.acreate(slug="able", name="Able", tools=list(TOOLS))
    await Assistant.objects.acreate(
        slug="grace", name="Grace Hopper", instructions="Be Grace.", voice="verse", turn_detection=None
    )
    return {"assistant": "able"}


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    """The engine on a socket, its models loaded."""
    from tests.parts.engine_parts import loaded
    from tests.parts.engine_server import engine_server

    loaded()
    with engine_server() as running:
        yield running


@pytest.fixture
async def engine_here() -> AsyncIterator[EngineHere]:
    """The engine in the test's own event loop, in which time passes only where a client waits or speaks."""
    from tests.parts.engine_server import engine_in_still_time

    async with engine_in_still_time() as running:
        yield running


@pytest.fixture(scope="module")
def product() -> Iterator[EngineServer]:
    """The whole product on a socket."""
    from tests.parts.engine_server import EngineServer
    from voiceapp.asgi import application

    with EngineServer(application) as running:
        yield running


@pytest.fixture
def server(product: EngineServer, transactional_db: None) -> Iterator[str]:
    """The whole product on a socket; its address as ``ws://…``."""
    yield product.address
    # An answer is charged when it has been sent: before the database is emptied.
    product.wait_idle()


@pytest.fixture
def site(server: str) -> str:
    """The whole product on a socket; its address as ``http://…``."""
    return server.replace("ws://", "http://")


@pytest.fixture
def token(user: User) -> str:
    """An API token of the user's."""
    from voiceapp.records.store.tokens import make_token

    return make_token(user, "tests")[1]


@pytest.fixture
async def gateway(site: str, token: str) -> AsyncIterator[httpx.AsyncClient]:
    """A text client that sends the token."""
    import httpx

    headers = {"authorization": f"Bearer {token}"}
    # Plain HTTP: to read certificates would take longer than most tests.
    async with httpx.AsyncClient(base_url=site, headers=headers, timeout=PATIENCE_S, verify=False) as client:
        yield client


@pytest.fixture
async def shop() -> AsyncIterator[ShopService]:
    """A service that HTTP tools call."""
    from tests.parts.http_service import shop_service

    async with shop_service() as running:
        yield running
