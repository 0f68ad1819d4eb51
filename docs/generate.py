"""Writes the parts of the documents that come from the code.

    python -m docs.generate            # writes what has changed
    python -m docs.generate --check    # writes nothing, names what is out of date, and then fails

``DOCUMENTS`` has one function for each file that is written so, in whole or in part: it takes the text that
the file has now (nothing where there is none yet) and returns the text that it should have. A part stands
between ``<!-- begin NAME … -->`` and ``<!-- end NAME -->``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from docs import page_protocol
from docs.page_examples import EXAMPLES
from voiceapp.config import SETTINGS, Setting
from voiceapp.engine.session.event_types import CLIENT_TYPES, EMITTED, TRANSCRIPTION_TYPES
from voiceapp.engine.session.fields import FIELDS, Effect, Field
from voiceapp.protocol.dialects import CONTRACT_ONLY_EVENTS, Dialect, Half, from_ga, to_ga
from voiceapp.protocol.events import CLIENT_EVENTS, SERVER_EVENTS

ROOT: Final = Path(__file__).resolve().parents[1]


def main() -> int:
    """Write the documents, or check them; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the parts of the documents that come from the code.")
    parser.add_argument("--check", action="store_true", help="only name the documents that are out of date")
    check: bool = parser.parse_args().check
    stale = outdated()
    for name, text in stale.items():
        if check:
            print(f"{name} is out of date: run python -m docs.generate")
        else:
            (ROOT / name).write_text(text, "utf-8")
            print(f"{name} is written")
    return 1 if check and stale else 0


def outdated() -> dict[str, str]:
    """Return the files whose text is not what the code says, each with the text that it should have."""
    wanted: dict[str, str] = {}
    for name, document in DOCUMENTS.items():
        path = ROOT / name
        text = path.read_text("utf-8") if path.exists() else ""
        if (due := document(text)) != text:
            wanted[name] = due
    return wanted


def with_part(text: str, name: str, part: str) -> str:
    """Return a document's text with its part ``name`` replaced; raise ``ValueError`` where it has none."""
    found = re.search(rf"(<!-- begin {name}\b[^>]*-->\n).*?(<!-- end {name} -->)", text, re.S)
    if found is None:
        raise ValueError(f"there is no part {name!r}")
    return f"{text[: found.start()]}{found[1]}\n{part}\n\n{found[2]}{text[found.end() :]}"


# -- the settings ---------------------------------------------------------------------------------------


def configuration(text: str) -> str:
    """Return ``configuration.md`` with the table of settings."""
    rows = ["| Variable | Default | Meaning |", "| --- | --- | --- |", *map(setting_row, SETTINGS)]
    return with_part(text, "settings", "\n".join(rows))


def setting_row(setting: Setting) -> str:
    """Return a setting's row of the table."""
    default = setting.default
    if isinstance(default, bool):
        shown = "1" if default else "0"
    elif isinstance(default, float):
        shown = f"{default:g}"
    else:
        shown = str(default)
    return f"| `{setting.name}` | {f'`{shown}`' if shown else ''} | {setting.help} |"


# -- the engine's events --------------------------------------------------------------------------------

_DIALECTS: Final = (Dialect.GA, Dialect.PREVIEW, Dialect.CONTRACT)
_RELAY: Final = "the page's relay, from what its loudspeaker played"
_REMARKS: Final = {
    "rate_limits.updated": "only when ordered by `faults=rate_limits`, as Azure sends none",
    "conversation.item.input_audio_transcription.segment": "transcription sessions",
    "transcription_session.created": "transcription sessions",
    "transcription_session.updated": "transcription sessions",
    "transcription_session.update": "transcription sessions",
}


def engine(text: str) -> str:
    """Return ``engine.md`` with the tables of events and of clients' fields."""
    return with_part(with_part(text, "events", events_table()), "fields", fields_table())


_VERDICTS: Final = {Effect.UNKNOWN: "refused (`unknown_parameter`)"}


def fields_table() -> str:
    """Return the table of the fields that a client may send, those of one place and verdict in one row."""
    lines = ["| Where | Field | | Why |", "| --- | --- | --- | --- |"]
    for place, rows in FIELDS.items():
        alike: dict[Field, list[str]] = {}
        for name, row in rows.items():
            alike.setdefault(row, []).append(f"`{name}`")
        for row, names in alike.items():
            verdict = _VERDICTS.get(row.effect, row.effect.value)
            why = re.sub(r"'(\w+)'", r"`\1`", row.reason)
            lines.append(f"| `{place}` | {', '.join(names)} | {verdict} | {why} |")
    return "\n".join(lines)


def events_table() -> str:
    """Return the table of events, client events first, each half in the order of the protocol."""
    lines = ["| Event | GA | preview | contract | Remark |", "| --- | --- | --- | --- | --- |"]
    for mark, known, by_dialect in (
        ("accepted", CLIENT_EVENTS, {dialect: accepted(dialect) for dialect in _DIALECTS}),
        ("emitted", SERVER_EVENTS, {dialect: emitted(dialect) for dialect in _DIALECTS}),
    ):
        everything = list(known)
        everything += sorted({name for names in by_dialect.values() for name in names} - set(known))
        for name in everything:
            cells = [mark if name in by_dialect[dialect] else "" for dialect in _DIALECTS]
            remark = _REMARKS.get(name, "") if any(cells) else _RELAY
            lines.append(f"| `{name}` | {' | '.join(cells)} | {remark} |")
    return "\n".join(lines)


def accepted(dialect: Dialect) -> set[str]:
    """Return the names of the client events that the engine obeys in ``dialect``."""
    known = {*CLIENT_TYPES, *TRANSCRIPTION_TYPES, "transcription_session.update"}
    names: set[str] = set()
    for kind in CLIENT_EVENTS:
        (event,) = to_ga({"type": kind, "session": {}}, dialect, Half.CLIENT)
        if event["type"] in known:
            names.add(kind)
    return names


def emitted(dialect: Dialect) -> set[str]:
    """Return the names of the events that the engine sends in ``dialect``."""
    return {name for event in EMITTED for name in _wire_names(event.type_name(), dialect)}


def _wire_names(kind: str, dialect: Dialect) -> set[str]:
    """Return what a server event (GA name) is called in ``dialect``; nothing where it does not exist."""
    if kind in CONTRACT_ONLY_EVENTS:
        return {kind} if dialect is Dialect.CONTRACT else set()
    shapes: list[dict[str, object]] = [{"type": kind, "event_id": ""}]
    if kind in ("session.created", "session.updated"):
        shapes = [{**shapes[0], "session": {"type": one}} for one in ("realtime", "transcription")]
    return {str(event["type"]) for shape in shapes for event in from_ga(shape, dialect, Half.SERVER)}


# -- the page's protocol --------------------------------------------------------------------------------


def page_messages(text: str) -> str:
    """Return ``page-protocol.md`` with its messages, events and close codes."""
    for name, part in page_protocol.parts().items():
        text = with_part(text, name, part)
    return text


def fixture(name: str) -> Callable[[str], str]:
    """Return what writes the example of a message of the page's socket, one line of JSON."""
    return lambda _: f"{page_protocol.page_example(name)}\n"


DOCUMENTS: Final[dict[str, Callable[[str], str]]] = {
    "docs/configuration.md": configuration,
    "docs/engine.md": engine,
    "docs/page-protocol.md": page_messages,
    "static/voiceapp/realtime/messages.js": lambda _: page_protocol.message_types(),
    "static/voiceapp/realtime/realtime_events.js": lambda _: page_protocol.event_types(),
    **{f"tests/fixtures/page/{name}.json": fixture(name) for name in EXAMPLES},
    "tests/fixtures/close_codes.json": lambda _: page_protocol.close_codes(),
}

if __name__ == "__main__":
    sys.exit(main())
