"""The process makes, drains and closes everything that lives as long as it does, in one order."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import logging
import re
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from ipaddress import IPv6Network
from pathlib import PurePath
from struct import Struct
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pytest
from django.dispatch import Signal
from django.urls import URLPattern, URLResolver

from tests.parts.places import ROOT
from tests.parts.sources import trees
from voiceapp import config
from voiceapp.process import Process, current, running
from voiceapp.records.store.writer import StoreUnavailable, writer
from voiceapp.relay.process.sessions import sessions
from voiceapp.signals import server_stopping, session_ended
from voiceapp.types import Part

ASKS_DJANGO = ("settings.py", "process.py", "records/admin/", "records/models/", "records/validation.py",
               "web/checks.py", "web/server.py", "web/management/")  # fmt: skip
"""Who may read ``settings.VOICE``: what makes the process, and what Django calls where none runs."""

NEVER_CHANGE = (
    str, bytes, int, float, NoneType, re.Pattern, Struct, timedelta, Decimal, IPv6Network, PurePath, Enum,
    FunctionType, BuiltinFunctionType, ModuleType, type, URLPattern, URLResolver,
)  # fmt: skip
"""Types of values that are the same for as long as the interpreter runs."""

CHANGE: Final[dict[str, str]] = {
    "voiceapp.asgi:application": "It hands on what comes, and keeps nothing.",
    "voiceapp.asgi:django": "Django's handler, which Django makes once.",
    "voiceapp.asgi:process": "The process itself, which a server makes by importing this module.",
    "voiceapp.loadtest.service:_ids": "Numbers of a program that only measures; no two of them are alike.",
    "voiceapp.protocol.codec:_AUDIO_DELTA": "A decoder, which keeps nothing between two texts.",
    "voiceapp.protocol.codec:_OBJECT": "A decoder, which keeps nothing between two texts.",
    "voiceapp.records.models.http_tools:read": "A memory of what follows from its argument alone.",
    "voiceapp.records.store.store:_ANYBODYS": "A condition, which is only ever added to others.",
    "voiceapp.web.templatetags.modules:register": "The list of the tags, which Django reads.",
    "voiceapp.routing:_why": "An application: it has what it was made of.",
    "voiceapp.signals:server_stopping": "Definitions: code that is imported connects to it.",
    "voiceapp.signals:session_ended": "Definitions: code that is imported connects to it.",
    "voiceapp.text.structured:_META": "A validator, which keeps nothing between two schemas.",
    "voiceapp.text.structured:_limit": "Each thread has its own, for as long as it checks one answer.",
    "voiceapp.tools.mcp.connection:_TIMEOUT": "Numbers, which nobody sets.",
    "voiceapp.tools.registry:registry": "Definitions of tools: code that is imported adds them.",
}
"""What modules make when they are imported, and could change: why it may stand there."""

MUTATORS: Final = frozenset(
    ["add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove",
     "reverse", "setdefault", "sort", "update"]
)  # fmt: skip


@pytest.fixture
def own() -> Iterator[Process]:
    """A process of the test's own."""
    with Process() as made:
        yield made


def resources() -> list[tuple[list[str], str, str]]:
    """Return the rows of the table in ARCHITECTURE.md: names, when each is made, how it is released."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("| Resource | Made | Released |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[1:]]
    return [(re.findall(r"`(\w+)`", names), made, released) for names, made, released in rows]


def test_the_table_names_what_the_process_makes_in_its_order() -> None:
    with Process() as made:
        parts = [name for name in vars(made) if not name.startswith("_")]
    assert [name for names, _, _ in resources() for name in names] == parts
    assert all(made and released for _, made, released in resources())


async def test_it_closes_in_the_reverse_order_and_the_writer_last(
    own: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    for name, verb in (
        ("events", "drain"), ("nnrp", "drain"), ("summaries", "aclose"), ("handover", "aclose"),
        ("sessions", "drain"), ("providers", "aclose"), ("models", "aclose"), ("writer", "aclose"),
    ):  # fmt: skip

        async def close(name: str = name) -> None:
            closed.append(name)

        monkeypatch.setattr(getattr(own, name), verb, close)
    await own.aclose()
    made = [name for names, _, _ in resources() for name in names]
    # What is under way is drained at once, before what it needs is closed.
    assert set(closed[:5]) == {"events", "nnrp", "summaries", "handover", "sessions"}
    assert closed[5:] == sorted(closed[5:], key=made.index, reverse=True) == ["providers", "models", "writer"]


async def test_a_server_that_stops_drains_once(own: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    drained: list[None] = []

    async def drain() -> None:
        drained.append(None)

    monkeypatch.setattr(own.sessions, "drain", drain)
    await server_stopping.asend(None)
    await own.aclose()
    assert drained == [None]


@pytest.mark.parametrize("part", ["nnrp", "sessions", "providers", "models"])
async def test_a_part_that_fails_to_end_keeps_nobody_else_from_ending(
    own: Process, part: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> None:
        raise OSError("no")

    verb = "drain" if part in ("nnrp", "sessions") else "aclose"
    monkeypatch.setattr(getattr(own, part), verb, fails)
    await own.aclose()
    assert own.writer.closed
    assert "did not end in order" in caplog.text


async def test_a_session_that_ended_gets_its_summary_if_the_settings_say_so(
    own: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[object] = []
    monkeypatch.setattr(own.summaries, "add", added.append)
    session_id = uuid4()
    await session_ended.asend(None, session_id=session_id)
    assert added == [session_id]


def test_layers_find_the_parts_of_the_process_that_runs(process: Process) -> None:
    with Process() as inner:
        assert (sessions(), writer(), running(), current()) == (inner.sessions, inner.writer, inner, inner)
        assert config.voice_config().data_dir
    assert sessions() is process.sessions


def test_where_no_process_runs_asking_says_so() -> None:
    place = type(sessions)("nothing")
    with pytest.raises(RuntimeError, match="There is no nothing"):
        place()


def test_what_is_closed_takes_nothing_more() -> None:
    with Process() as made:
        keep = made.writer
    assert keep.closed
    with pytest.raises(StoreUnavailable):
        keep.post(lambda: None)


@cache
def own_values() -> list[tuple[str, str, Any]]:
    """Return (module, name, value) of what each module assigns when it is imported; settings are Django's."""
    found: list[tuple[str, str, Any]] = []
    for path, tree in trees().items():
        if "migrations" in path.parts or path.name == "settings.py":
            continue
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        module = importlib.import_module(dotted)
        for node in statements(tree.body):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (
                one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)
            ):
                # A variable of a loop may be gone, an annotation have no value.
                if name in vars(module) and not name.startswith("__"):
                    found.append((dotted, name, vars(module)[name]))
    return found


def statements(body: list[ast.stmt]) -> Iterator[ast.Assign | ast.AnnAssign]:
    """Yield what is assigned in a module's body, also under conditions."""
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield node
        for inner in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from statements(getattr(node, inner, []))


def never_changes(value: Any) -> bool:
    """Whether a value has no state, apart from what is put into dictionaries, lists and sets."""
    if isinstance(value, dict):
        return all(never_changes(one) for item in value.items() for one in item)
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(never_changes, value))
    if dataclasses.is_dataclass(value) and vars(type(value))["__dataclass_params__"].frozen:
        return True
    kind = type(value)
    return isinstance(value, (*NEVER_CHANGE, logging.Logger, Part, np.ndarray)) or kind.__module__ in (
        "typing", "types", "collections.abc",
    )  # fmt: skip


def mutated(tree: ast.AST) -> Iterator[str]:
    """Yield the names of what code puts something into or takes something from."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=target, ctx=ast.Store() | ast.Del()):
                pass
            case ast.Call(func=ast.Attribute(value=target, attr=verb)) if verb in MUTATORS:
                pass
            case ast.AugAssign(target=target):
                pass
            case ast.Call(func=ast.Name(id="next"), args=[target, *_]):
                pass
            case _:
                continue
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Attribute):
            yield target.attr


def test_no_module_makes_an_object_with_a_state_of_its_own_when_it_is_imported() -> None:
    changing = {f"{module}:{name}" for module, name, value in own_values() if not never_changes(value)}
    assert changing == CHANGE.keys()
    assert not [path for path in trees() if re.search(r"^\s+global ", path.read_text(), re.MULTILINE)]


def test_no_module_puts_anything_into_what_it_made_when_it_was_imported() -> None:
    tables = {name for _, name, value in own_values() if isinstance(value, dict | list | set | np.ndarray)}
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for path, tree in trees().items()
        for name in mutated(tree)
        if name in tables
    }
    assert found == set()


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("def f(): TABLE['a'] = 1", "TABLE"), ("def f(): del TABLE['a']", "TABLE"),
        ("def f(): module.TABLE.append(1)", "TABLE"), ("def f(): TABLE.setdefault(1, 2)", "TABLE"),
        ("def f(): TABLE[0] += 1", "TABLE"), ("def f(): next(NUMBERS)", "NUMBERS"),
    ],
)  # fmt: skip
def test_what_is_put_into_a_table_is_found(code: str, name: str) -> None:
    assert name in set(mutated(ast.parse(code)))
    assert "TABLE" not in set(mutated(ast.parse("def f(): return TABLE['a'], TABLE.get(1), TABLE.items()")))


@pytest.mark.parametrize("value", [Signal(), [Signal()], {"a": object()}, (deque[int](),), Process])
def test_values_that_can_change_are_found(value: Any) -> None:
    assert never_changes(value) is isinstance(value, type)


def test_the_settings_are_read_where_the_process_is_made_and_where_none_runs() -> None:
    readers = set()
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "VOICE":
                readers.add(str(path.relative_to(ROOT / "voiceapp")))
    assert [reader for reader in sorted(readers) if not reader.startswith(ASKS_DJANGO)] == []
