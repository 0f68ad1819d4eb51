"""Tools as services know them: functions whose arguments the model writes and whose output it reads."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from voiceapp.errors import InvalidArguments, ToolError, ToolFailed
from voiceapp.tools.parameters import fitted
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

MAX_NAME_CHARS = 64
MAX_ARGUMENT_CHARS = 100_000
MAX_OUTPUT_CHARS = 16_000
"""Longest output that is given to the model: a few thousand tokens of its context."""
MAX_DESCRIPTION_CHARS = 1024
"""Services refuse longer ones."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MIN_LABEL_CHARS: Final = 8
_T = TypeVar("_T")


class AskFirst(NamedTuple):
    """A function that runs only once the user allows it, as it is named to them.

    ``server_label`` is the server or service that it is of, empty for neither; ``name`` its name there.
    ``previews``: it can say beforehand what a call would do.
    """

    server_label: str
    name: str
    previews: bool = False


def name_like(name: str) -> str:
    """Return the like of a name that services take for a function."""
    return _NOT_IN_A_NAME.sub("_", name)[:MAX_NAME_CHARS] or "tool"


def definition(name: str, description: str, parameters: JsonObject) -> JsonObject | None:
    """Return a function as ``session.update`` wants it (Realtime API, ``session.tools``).

    Returns ``None``, and logs that it is left out, where no service would take it.
    """
    schema = fitted(parameters)
    if schema is None or not _NAME.fullmatch(name):
        logger.warning("The tool %.64r is left out: voice services would refuse it.", name)
        return None
    return {
        "type": "function",
        "name": name,
        "description": description[:MAX_DESCRIPTION_CHARS],
        "parameters": schema,
    }


def offered(functions: Iterable[JsonObject | None]) -> list[JsonObject]:
    """Return the functions that are not left out."""
    return [function for function in functions if function is not None]


def read_arguments(arguments: str, kind: type[_T]) -> _T:
    """Return the model's raw arguments as ``kind``; raise ``InvalidArguments`` where they are none."""
    if len(arguments) > MAX_ARGUMENT_CHARS:
        raise InvalidArguments("The arguments are too long.")
    try:
        # Models send an empty text where a tool takes nothing.
        return msgspec.json.decode(arguments.strip() or "{}", type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidArguments(f"The arguments do not fit: {error}.") from None


def as_text(name: str, result: Any) -> str:
    """Return what a tool brought as text for the model, cut to ``MAX_OUTPUT_CHARS``.

    Raises ``ToolFailed`` where it is neither text nor JSON.
    """
    try:
        text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    except (TypeError, ValueError) as error:
        raise ToolFailed(f"{name} gave something that is no JSON.") from error
    return text if len(text) <= MAX_OUTPUT_CHARS else f"{text[:MAX_OUTPUT_CHARS]}… (cut)"


def failure(error: ToolError) -> str:
    """Return the output that tells the model that a tool could not help."""
    return msgspec.json.encode({"error": {"code": error.code, "message": error.message}}).decode()


def free_name(name: str, label: str, taken: set[str]) -> str:
    """Return a name that chat endpoints take for a function, and that no other tool has."""
    plain = name_like(name)
    if plain not in taken:
        return plain
    for number in range(len(taken) + 1):
        end = f"_{label}" if number == 0 else f"_{number}"
        other = f"{plain[: MAX_NAME_CHARS - len(end)]}{end}"[-MAX_NAME_CHARS:]
        if other not in taken:
            return other
    raise AssertionError("more names are taken than there are")


def name_of(label: str, name: str, taken: set[str]) -> str:
    """Return a free name for a tool ``name`` of the server or service ``label``, which gives way to it."""
    short = label[: max(_MIN_LABEL_CHARS, MAX_NAME_CHARS - 1 - len(name))]
    return free_name(f"{short}_{name}", label, taken)
