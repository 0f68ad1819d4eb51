"""What a text client asks for."""

from __future__ import annotations

HELLO = {"messages": [{"role": "user", "content": "What is twelve times twelve?"}]}


SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["score"],
    "additionalProperties": False,
}
