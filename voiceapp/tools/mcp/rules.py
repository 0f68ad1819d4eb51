"""Which tools of an MCP server may be used, which are asked about first, and under which names. Pure."""

from __future__ import annotations

from typing import Any

from voiceapp.tools.mcp.messages import McpTool
from voiceapp.types import JsonObject


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


def _fits(wanted: JsonObject, tool: McpTool, *, empty: bool) -> bool:
    names, read_only = wanted.get("tool_names"), wanted.get("read_only")
    if names is None and read_only is None:
        return empty
    named = names is None or tool.name in names
    return bool(named and (read_only is None or tool.read_only is read_only))
