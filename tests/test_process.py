"""The process makes, drains and closes everything that lives as long as it does, in one order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.parts.places import ROOT
from voiceapp import config
from voiceapp.process import Process, current, running
from voiceapp.records.store.writer import StoreUnavailable, writer
from voiceapp.relay.process.sessions import sessions
from voiceapp.signals import server_stopping, session_ended

ASKS_DJANGO = ("settings.py", "process.py", "records/admin/", "records/models/", "records/validation.py",
               "web/checks.py", "web/server.py", "web/management/")  # fmt: skip
"""Who may read ``settings.VOICE``: what makes the process, and what Django calls where none runs."""

SINGLETONS = re.compile(r"^\w+(: [^=]+)? = \w*[A-Z]\w*\(\)", re.MULTILINE)


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


def sources() -> list[Path]:
    return sorted((ROOT / "voiceapp").rglob("*.py"))


def test_no_module_makes_an_object_with_a_state_of_its_own_when_it_is_imported() -> None:
    # The first two are filled by code that is imported, the last one never changes.
    definitions = {"voiceapp/tools/registry.py": "registry = ToolRegistry()",
                   "voiceapp/signals.py": "session_ended = Signal()",
                   "voiceapp/records/store/store.py": "_ANYBODYS = Q()"}  # fmt: skip
    found = {
        str(path.relative_to(ROOT)): made[0]
        for path in sources()
        if (made := [match[0] for match in SINGLETONS.finditer(path.read_text())])
    }
    assert found == definitions
    assert not [path for path in sources() if re.search(r"^\s+global ", path.read_text(), re.MULTILINE)]


def test_the_settings_are_read_where_the_process_is_made_and_where_none_runs() -> None:
    readers = set()
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "VOICE":
                readers.add(str(path.relative_to(ROOT / "voiceapp")))
    assert [reader for reader in sorted(readers) if not reader.startswith(ASKS_DJANGO)] == []
