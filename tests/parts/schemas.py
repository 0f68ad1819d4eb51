"""Schemas that are hard to check."""

from __future__ import annotations

from voiceapp.types import JsonObject


def doubling(depth: int) -> JsonObject:
    """Return a schema of a few lines that takes 2 to the power of ``depth`` steps to check."""
    twice = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    return {"type": "object", "$ref": "#/$defs/a0", "$defs": {**twice, f"a{depth}": {}}}
