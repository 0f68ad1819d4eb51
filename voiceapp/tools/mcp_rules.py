"""Which tools of an MCP server may be used, which are asked about first, and under which names. Pure."""

from __future__ import annotations

from typing import Any, Final

from voiceapp.protocol.events import Object
from voiceapp.tools.functions import MAX_NAME_CHARS, name_like
from voiceapp.tools.mcp_asking import McpTool

_MIN_LABEL_CHARS: Final = 8


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


def allowed(wanted: Any, tool: McpTool) -> bool:
    """Whether a server's ``allowed_tools`` let a tool be offered."""
    if wanted is None:
        return True
    if isinstance(wanted, list):
        return tool.name in wanted
    return _fits(wanted, tool, empty=True)


def needs_approval(rule: Any, tool: McpTool) -> bool:
    """Whether a server's ``require_approval`` wants the user to be asked about a tool."""
    if isinstance(rule, dict):
        # What is in both, or in neither, is asked for: nothing runs unasked by mistake.
        always, never = rule.get("always"), rule.get("never")
        if always is not None and _fits(always, tool, empty=True):
            return True
        return never is None or not _fits(never, tool, empty=False)
    return bool(rule != "never")


def _fits(wanted: Object, tool: McpTool, *, empty: bool) -> bool:
    names, read_only = wanted.get("tool_names"), wanted.get("read_only")
    if names is None and read_only is None:
        return empty
    named = names is None or tool.name in names
    return bool(named and (read_only is None or tool.read_only is read_only))
