"""Which events the engine takes and sends in each dialect, read from its own code.

    python -m voiceapp.engine.events_table

prints the table that stands in the README.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from voiceapp.engine.session.session import CLIENT_TYPES, TRANSCRIPTION_TYPES
from voiceapp.protocol.dialects import CONTRACT_ONLY_EVENTS, Dialect, Half, from_ga, to_ga
from voiceapp.protocol.events import CLIENT_EVENTS, SERVER_EVENTS

_DIALECTS: Final = (Dialect.GA, Dialect.PREVIEW, Dialect.CONTRACT)
_RELAY: Final = "the page's relay, from what its loudspeaker played"
_REMARKS: Final = {
    "rate_limits.updated": "only when ordered by `faults=rate_limits`, as Azure sends none",
    "conversation.item.input_audio_transcription.segment": "transcription sessions",
    "transcription_session.created": "transcription sessions",
    "transcription_session.updated": "transcription sessions",
    "transcription_session.update": "transcription sessions",
}


def emitted() -> dict[str, type]:
    """Return the server events (GA names) that some module of the engine makes."""
    named = {name for path in Path(__file__).parent.rglob("*.py") for name in _names(path)}
    # The codec makes this one.
    if "error_event" in named:
        named.add("Error")
    return {kind: cls for kind, cls in SERVER_EVENTS.items() if cls.__name__ in named}


def _names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


def wire_names(kind: str, dialect: Dialect) -> set[str]:
    """Return what a server event (GA name) is called in ``dialect``; nothing where it does not exist."""
    if kind in CONTRACT_ONLY_EVENTS:
        return {kind} if dialect is Dialect.CONTRACT else set()
    shapes: list[dict[str, object]] = [{"type": kind, "event_id": ""}]
    if kind in ("session.created", "session.updated"):
        shapes = [{**shapes[0], "session": {"type": one}} for one in ("realtime", "transcription")]
    return {str(event["type"]) for shape in shapes for event in from_ga(shape, dialect, Half.SERVER)}


def sent(dialect: Dialect) -> set[str]:
    """Return the names of the events that the engine sends in ``dialect``."""
    return {name for kind in emitted() for name in wire_names(kind, dialect)}


def taken(dialect: Dialect) -> set[str]:
    """Return the names of the events that the engine obeys in ``dialect``."""
    known = {*CLIENT_TYPES, *TRANSCRIPTION_TYPES, "transcription_session.update"}
    names: set[str] = set()
    for kind in CLIENT_EVENTS:
        (event,) = to_ga({"type": kind, "session": {}}, dialect, Half.CLIENT)
        if event["type"] in known:
            names.add(kind)
    return names


def table() -> str:
    """Return the table as Markdown, client events first, each half in the order of the protocol."""
    lines = ["| Event | GA | preview | contract | Remark |", "| --- | --- | --- | --- | --- |"]
    for mark, known, engine in (
        ("accepted", CLIENT_EVENTS, {dialect: taken(dialect) for dialect in _DIALECTS}),
        ("emitted", SERVER_EVENTS, {dialect: sent(dialect) for dialect in _DIALECTS}),
    ):
        everything = list(known)
        everything += sorted({name for names in engine.values() for name in names} - set(known))
        for name in everything:
            cells = [mark if name in engine[dialect] else "" for dialect in _DIALECTS]
            lines.append(f"| `{name}` | {' | '.join(cells)} | {_remark(name, any(cells))} |")
    return "\n".join(lines)


def _remark(name: str, by_engine: bool) -> str:
    if by_engine:
        return _REMARKS.get(name, "")
    return _RELAY


if __name__ == "__main__":
    print(table())
