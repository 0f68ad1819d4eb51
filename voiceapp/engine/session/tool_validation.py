"""Checks of the tools that a client offers: functions of its own, and MCP servers that have tools. Pure."""

from __future__ import annotations

from typing import Any, Final

from voiceapp.assistants.mcp_servers import (
    HEADER_NAME,
    HEADER_VALUE,
    LABEL,
    MAX_HEADERS,
    MAX_SECRET_CHARS,
    MAX_SERVERS,
    MAX_TOOL_NAME_CHARS,
    MAX_TOOLS,
    MAX_URL_CHARS,
    OWN_HEADERS,
)
from voiceapp.engine.session import fields, validation
from voiceapp.outbound.addresses import scheme_of
from voiceapp.protocol import events as ev
from voiceapp.tools.functions import MAX_DESCRIPTION_CHARS


def tools(value: Any, path: str) -> list[dict[str, Any]]:
    """Check a list of tools."""
    checked = [_tool(tool, f"{path}[{index}]") for index, tool in enumerate(_array(value, path))]
    labels = [tool["server_label"] for tool in checked if tool["type"] == "mcp"]
    if len(labels) > MAX_SERVERS:
        raise validation.refuse(
            "array_above_max_length", f"Invalid '{path}': at most {MAX_SERVERS} MCP servers.", path
        )
    if len(set(labels)) < len(labels):
        raise validation.refuse(
            "invalid_value", f"Invalid '{path}': every MCP server needs a 'server_label' of its own.", path
        )
    return checked


def _array(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise validation.wrong_type(path, "an array", value)
    if len(value) > MAX_TOOLS:
        raise validation.refuse(
            "array_above_max_length",
            f"Invalid '{path}': array too long. Expected an array with maximum length {MAX_TOOLS}, "
            f"but got an array with length {len(value)} instead.",
            path,
        )
    return value


def _tool(value: Any, path: str) -> dict[str, Any]:
    kind = validation.any_object(value, path).get("type", "function")
    if kind == "mcp":
        return _mcp(value, path)
    if kind != "function":
        raise validation.invalid_value(kind, ["function", "mcp"], f"{path}.type")
    tool = _FUNCTION(value, path)
    return {"type": "function", **tool}


def _name(value: Any, path: str) -> str:
    name: str = validation.text()(value, path)
    if not LABEL.fullmatch(name):
        raise validation.refuse(
            "invalid_value",
            f"Invalid '{path}': expected 1 to 64 letters, digits, underscores or hyphens.",
            path,
        )
    return name


_FUNCTION: Final = fields.checked(
    "tools[function]",
    {
        "type": validation.text(),
        "name": _name,
        "description": validation.nullable(validation.text(MAX_DESCRIPTION_CHARS)),
        "parameters": validation.nullable(validation.any_object),
        "strict": validation.nullable(validation.boolean),
    },
    required=["name"],
)


# -- MCP ------------------------------------------------------------------------------------------------


def _mcp(value: Any, path: str) -> dict[str, Any]:
    checked: dict[str, Any] = _MCP(value, path)
    return checked


def _url(value: Any, path: str) -> str:
    url: str = validation.text(MAX_URL_CHARS)(value, path)
    if scheme_of(url) not in ("http", "https"):
        raise validation.refuse(
            "invalid_value", f"Invalid '{path}': expected an http or https address.", path
        )
    return url


def _secret(value: Any, path: str) -> str:
    text: str = validation.text(MAX_SECRET_CHARS)(value, path)
    if not HEADER_VALUE.fullmatch(text):
        raise validation.refuse("invalid_value", f"Invalid '{path}': expected printable ASCII.", path)
    return text


def _headers(value: Any, path: str) -> dict[str, str]:
    given = validation.any_object(value, path)
    if len(given) > MAX_HEADERS:
        raise validation.refuse(
            "object_above_max_properties", f"Invalid '{path}': expected at most {MAX_HEADERS}.", path
        )
    for name in given:
        if not HEADER_NAME.fullmatch(name) or name.lower() in OWN_HEADERS:
            raise validation.refuse("invalid_value", f"Invalid '{path}': no header for you to set.", path)
    return {name: _secret(inner, f"{path}.{name}") for name, inner in given.items()}


def _names(value: Any, path: str) -> list[str]:
    name = validation.text(MAX_TOOL_NAME_CHARS)
    return [name(one, f"{path}[{index}]") for index, one in enumerate(_array(value, path))]


_FILTER: Final = {
    "tool_names": validation.nullable(_names), "read_only": validation.nullable(validation.boolean)
}  # fmt: skip
_ALLOWED: Final = fields.checked("tools[mcp].allowed_tools", _FILTER)
_APPROVAL: Final = fields.checked(
    "tools[mcp].require_approval",
    {
        name: validation.nullable(fields.checked(f"tools[mcp].require_approval.{name}", _FILTER))
        for name in ("always", "never")
    },
)


def _allowed(value: Any, path: str) -> Any:
    return _ALLOWED(value, path) if isinstance(value, dict) else _names(value, path)


def _approval(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return _APPROVAL(value, path)
    return validation.one_of("always", "never")(value, path)


_MCP: Final = fields.checked(
    "tools[mcp]",
    {
        "type": validation.text(),
        "server_label": _name,
        "server_url": _url,
        "server_description": validation.nullable(validation.text(MAX_DESCRIPTION_CHARS)),
        "authorization": validation.nullable(_secret),
        "headers": validation.nullable(_headers),
        "allowed_tools": validation.nullable(_allowed),
        "require_approval": validation.nullable(_approval),
        "defer_loading": validation.nullable(validation.boolean),
    },
    required=["server_label", "server_url"],
)


def no_mcp(event: ev.Event | ev.UnknownEvent) -> None:
    """Raise ``ProtocolError`` where an event brings MCP servers to a session that has no events for them."""
    for name in ("session", "response"):
        given = getattr(event, name, None)
        listed = given.get("tools") if isinstance(given, dict) else None
        for index, tool in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(tool, dict) and tool.get("type") == "mcp":
                raise validation.invalid_value("mcp", ["function"], f"{name}.tools[{index}].type")


_FUNCTION_CHOICE: Final = fields.checked(
    "tool_choice[function]",
    {"type": validation.one_of("function", "mcp"), "name": validation.text()},
    required=["type", "name"],
)
_MCP_CHOICE: Final = fields.checked(
    "tool_choice[mcp]",
    {
        "type": validation.text(),
        "server_label": validation.text(),
        "name": validation.nullable(validation.text()),
    },
    required=["server_label"],
)


def tool_choice(value: Any, path: str) -> Any:
    """Check ``tool_choice``: a mode, one function, or an MCP server with or without the name of its tool."""
    if not isinstance(value, dict):
        return validation.one_of("none", "auto", "required")(value, path)
    if value.get("type") == "mcp":
        return _MCP_CHOICE(value, path)
    return _FUNCTION_CHOICE(value, path)
