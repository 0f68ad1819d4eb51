"""Checks of the tools that a client offers: functions of its own, and MCP servers that have tools. Pure."""

from __future__ import annotations

from typing import Any, Final

from voiceapp.addresses import scheme_of
from voiceapp.engine import checks
from voiceapp.mcp_servers import (
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
from voiceapp.protocol import events as ev
from voiceapp.tools.functions import MAX_DESCRIPTION_CHARS


def tools(value: Any, path: str) -> list[dict[str, Any]]:
    """Check a list of tools."""
    checked = [_tool(tool, f"{path}[{index}]") for index, tool in enumerate(_array(value, path))]
    labels = [tool["server_label"] for tool in checked if tool["type"] == "mcp"]
    if len(labels) > MAX_SERVERS:
        raise checks.refuse(
            "array_above_max_length", f"Invalid '{path}': at most {MAX_SERVERS} MCP servers.", path
        )
    if len(set(labels)) < len(labels):
        raise checks.refuse(
            "invalid_value", f"Invalid '{path}': every MCP server needs a 'server_label' of its own.", path
        )
    return checked


def _array(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise checks.wrong_type(path, "an array", value)
    if len(value) > MAX_TOOLS:
        raise checks.refuse(
            "array_above_max_length",
            f"Invalid '{path}': array too long. Expected an array with maximum length {MAX_TOOLS}, "
            f"but got an array with length {len(value)} instead.",
            path,
        )
    return value


def _tool(value: Any, path: str) -> dict[str, Any]:
    kind = checks.any_object(value, path).get("type", "function")
    if kind == "mcp":
        return _mcp(value, path)
    if kind != "function":
        raise checks.invalid_value(kind, ["function", "mcp"], f"{path}.type")
    tool = _FUNCTION(value, path)
    return {"type": "function", **tool}


def _name(value: Any, path: str) -> str:
    name: str = checks.text()(value, path)
    if not LABEL.fullmatch(name):
        raise checks.refuse(
            "invalid_value",
            f"Invalid '{path}': expected 1 to 64 letters, digits, underscores or hyphens.",
            path,
        )
    return name


_FUNCTION: Final = checks.fields(
    {
        "type": checks.text(),
        "name": _name,
        "description": checks.nullable(checks.text(MAX_DESCRIPTION_CHARS)),
        "parameters": checks.nullable(checks.any_object),
        "strict": checks.nullable(checks.boolean),
    },
    required=["name"],
)


# -- MCP ------------------------------------------------------------------------------------------------


def _mcp(value: Any, path: str) -> dict[str, Any]:
    if value.get("connector_id") is not None:
        raise checks.refuse(
            "invalid_value",
            f"Invalid '{path}.connector_id': there are no connectors here. Give the 'server_url'.",
            f"{path}.connector_id",
        )
    checked: dict[str, Any] = _MCP(value, path)
    return checked


def _url(value: Any, path: str) -> str:
    url: str = checks.text(MAX_URL_CHARS)(value, path)
    if scheme_of(url) not in ("http", "https"):
        raise checks.refuse("invalid_value", f"Invalid '{path}': expected an http or https address.", path)
    return url


def _secret(value: Any, path: str) -> str:
    text: str = checks.text(MAX_SECRET_CHARS)(value, path)
    if not HEADER_VALUE.fullmatch(text):
        raise checks.refuse("invalid_value", f"Invalid '{path}': expected printable ASCII.", path)
    return text


def _headers(value: Any, path: str) -> dict[str, str]:
    given = checks.any_object(value, path)
    if len(given) > MAX_HEADERS:
        raise checks.refuse(
            "object_above_max_properties", f"Invalid '{path}': expected at most {MAX_HEADERS}.", path
        )
    for name in given:
        if not HEADER_NAME.fullmatch(name) or name.lower() in OWN_HEADERS:
            raise checks.refuse("invalid_value", f"Invalid '{path}': no header for you to set.", path)
    return {name: _secret(inner, f"{path}.{name}") for name, inner in given.items()}


def _names(value: Any, path: str) -> list[str]:
    name = checks.text(MAX_TOOL_NAME_CHARS)
    return [name(one, f"{path}[{index}]") for index, one in enumerate(_array(value, path))]


_FILTER: Final = checks.fields(
    {"tool_names": checks.nullable(_names), "read_only": checks.nullable(checks.boolean)}
)


def _allowed(value: Any, path: str) -> Any:
    return _FILTER(value, path) if isinstance(value, dict) else _names(value, path)


def _approval(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return checks.fields({"always": checks.nullable(_FILTER), "never": checks.nullable(_FILTER)})(
            value, path
        )
    return checks.one_of("always", "never")(value, path)


_MCP: Final = checks.fields(
    {
        "type": checks.text(),
        "server_label": _name,
        "server_url": _url,
        "server_description": checks.nullable(checks.text(MAX_DESCRIPTION_CHARS)),
        "connector_id": checks.nullable(checks.text()),
        "authorization": checks.nullable(_secret),
        "headers": checks.nullable(_headers),
        "allowed_tools": checks.nullable(_allowed),
        "require_approval": checks.nullable(_approval),
        "defer_loading": checks.nullable(checks.boolean),
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
                raise checks.invalid_value("mcp", ["function"], f"{name}.tools[{index}].type")


def tool_choice(value: Any, path: str) -> Any:
    """Check ``tool_choice``: a mode, one function, or an MCP server with or without the name of its tool."""
    if not isinstance(value, dict):
        return checks.one_of("none", "auto", "required")(value, path)
    if value.get("type") == "mcp":
        return checks.fields(
            {"type": checks.text(), "server_label": checks.text(), "name": checks.nullable(checks.text())},
            required=["server_label"],
        )(value, path)
    return checks.fields(
        {"type": checks.one_of("function", "mcp"), "name": checks.text()}, required=["type", "name"]
    )(value, path)
