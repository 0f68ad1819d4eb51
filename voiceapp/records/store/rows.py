"""From records to rows: one upsert for each table, and text that every database can hold."""

from __future__ import annotations

import logging
import math
import re
from typing import Any, Final
from uuid import UUID

from django.db import DataError, IntegrityError, models, transaction
from django.db import Error as DatabaseTrouble

from voiceapp.conversation.records import ItemRecord, Record, ResponseRecord, ToolCallRecord
from voiceapp.records.models import Item, Response, ToolCall

logger = logging.getLogger(__name__)

Key = tuple[type[Record], UUID, str]
"""Kind of record, session, and the record's id within the session."""

_TABLES: Final[dict[type[Record], tuple[type[models.Model], str]]] = {
    ItemRecord: (Item, "item_id"),
    ResponseRecord: (Response, "response_id"),
    ToolCallRecord: (ToolCall, "call_id"),
}
_HALVES: Final = re.compile("[\ud800-\udfff]")
_ROWS_AT_ONCE: Final = 500
_REFUSED: Final = (
    DatabaseTrouble, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What the database and its adapters raise for a value that they cannot take."""


def write_rows(batch: dict[Key, Record]) -> None:
    """Insert or update the row of each record, in the batch's order.

    A record that the database refuses is written on its own, and logged by its ids if it is refused again:
    it must not take others with it. Raises any other ``django.db.Error`` where the database is away; then the
    batch may be repeated.
    """
    try:
        _write(batch)
    except _REFUSED as error:
        if isinstance(error, DatabaseTrouble) and not isinstance(error, DataError | IntegrityError):
            raise
        if len(batch) == 1:
            for kind, session_id, name in batch:
                logger.error("%s %s of session %s cannot be kept: %s",
                             kind.__name__, name[:64], session_id, type(error).__name__)  # fmt: skip
            return
        for key, record in batch.items():
            write_rows({key: record})


def _write(batch: dict[Key, Record]) -> None:
    with transaction.atomic():
        for kind, (model, name) in _TABLES.items():
            fields = kind.__struct_fields__
            rows: dict[tuple[UUID, str], models.Model] = {}
            for (record_kind, session_id, _), record in batch.items():
                if record_kind is kind:
                    row = _row(model, session_id, fields, record)
                    # Ids that differ only beyond the column's width are one row; the last one wins.
                    rows[session_id, getattr(row, name)] = row
            if rows:
                model._default_manager.bulk_create(
                    rows.values(),
                    batch_size=_ROWS_AT_ONCE,
                    update_conflicts=True,
                    unique_fields=["session", name],
                    update_fields=[field for field in fields if field != name],
                )


def _row(
    model: type[models.Model], session_id: UUID, fields: tuple[str, ...], record: Record
) -> models.Model:
    values: dict[str, Any] = {}
    for name in fields:
        value = storable(getattr(record, name))
        width = getattr(model._meta.get_field(name), "max_length", None)
        values[name] = value[:width] if isinstance(value, str) else value
    return model(session_id=session_id, **values)


def storable(value: Any) -> Any:
    """Return JSON-like data without what PostgreSQL or JSON cannot hold.

    U+0000 becomes its picture (U+2400), half surrogates U+FFFD, and numbers that are not finite ``None``.
    """
    if isinstance(value, str):
        text = value.replace("\0", "\u2400") if "\0" in value else value
        return text if text.isascii() else _HALVES.sub("\ufffd", text)
    if isinstance(value, dict):
        return {storable(key): storable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [storable(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
