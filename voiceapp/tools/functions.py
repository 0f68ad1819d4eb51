"""Tools as services know them: functions whose arguments the model writes and whose output it reads."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from voiceapp.errors import InvalidArguments, ToolError, ToolFailed
from voiceapp.protocol.events import Object

MAX_NAME_CHARS = 64
MAX_ARGUMENT_CHARS = 100_000
MAX_OUTPUT_CHARS = 16_000
"""Longest output that is given to the model: a few thousand tokens of its context."""
MAX_DESCRIPTION_CHARS = 1024
"""Services refuse longer ones."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_T = TypeVar("_T")


def name_like(name: str) -> str:
    """Return the like of a name that services take for a function."""
    return _NOT_IN_A_NAME.sub("_", name)[:MAX_NAME_CHARS] or "tool"


def definition(name: str, description: str, parameters: Object) -> Object:
    """Return a function as ``session.update`` wants it (Realtime API, ``session.tools``)."""
    return {
        "type": "function",
        "name": name,
        "description": description[:MAX_DESCRIPTION_CHARS],
        "parameters": parameters,
    }


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
