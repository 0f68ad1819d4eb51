"""A call's arguments as an HTTP request, by the styles of OpenAPI; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import msgspec

from voiceapp.assistants.http_tools import IDEMPOTENCY_KEY, HttpArgument, HttpOperation, HttpToolsConfig
from voiceapp.assistants.mcp_servers import HEADER_VALUE
from voiceapp.errors import InvalidArguments
from voiceapp.tools.http.operation import FORM, VARIABLE, names_in, split_path

MAX_ADDRESS_CHARS: Final = 8_000
"""Servers refuse longer ones."""
_SEPARATORS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_ACCEPT: Final = "application/json, text/plain;q=0.9, text/*;q=0.8, */*;q=0.1"


@dataclass(frozen=True)
class Prepared:
    """A request as it is sent. Its address and headers may hold the set's secret."""

    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = field(repr=False, default=None)


def prepare(
    tools: HttpToolsConfig, operation: HttpOperation, given: dict[str, Any], idempotency_key: str
) -> Prepared:
    """Return the request of a call whose arguments fit the operation's schema.

    Raises ``InvalidArguments`` for what the schema lets through and HTTP does not.
    """
    path: dict[str, str] = {}
    query: list[str] = []
    headers: dict[str, str] = {}
    body: Any = msgspec.UNSET
    for argument in operation.arguments:
        if argument.name not in given:
            continue
        value = given[argument.name]
        if argument.place == "whole body":
            body = value
        elif argument.place == "body":
            body = {} if body is msgspec.UNSET else body
            body[argument.target] = value
        elif value is None:
            # A parameter that is not there is the only way to say nothing.
            continue
        elif argument.place == "query":
            query += _in_query(argument, value)
        elif argument.place == "header":
            headers[argument.target] = _in_header(argument, value)
        else:
            path[argument.target] = _in_path(argument, value)
    query += [tools.query()] if tools.auth == "query" else []
    url = _address(tools, operation.path, path, query)
    return _with_headers(tools, operation, url, headers, _content(operation, body), idempotency_key)


def _content(operation: HttpOperation, body: Any) -> bytes | None:
    """Return the body as it is sent; ``body`` is unset where no argument is of it."""
    if body is msgspec.UNSET:
        if not operation.body_required:
            return None
        body = {}
    if operation.body_type != FORM:
        return msgspec.json.encode(body)
    fields: list[str] = []
    for argument in operation.arguments:
        if argument.place == "body" and body.get(argument.target) is not None:
            fields += _in_form(argument, body[argument.target])
    return "&".join(fields).encode() if fields or operation.body_required else None


def _with_headers(
    tools: HttpToolsConfig,
    operation: HttpOperation,
    url: str,
    headers: dict[str, str],
    content: bytes | None,
    idempotency_key: str,
) -> Prepared:
    own = {"Accept": _ACCEPT, "Accept-Encoding": "identity", "User-Agent": "voiceapp"}
    if content is not None:
        own["Content-Type"] = operation.body_type
    if operation.changes:
        own[IDEMPOTENCY_KEY] = idempotency_key
    own |= tools.headers()
    # The secret's header is the administrator's, whatever the document calls a parameter.
    reserved = {name.lower() for name in own}
    headers = {name: value for name, value in headers.items() if name.lower() not in reserved}
    return Prepared(operation.method, url, {**headers, **own}, content)


def _address(tools: HttpToolsConfig, template: str, path: dict[str, str], query: list[str]) -> str:
    """Return a call's address. The path's own query stands first, and its fragment is left away."""
    steps, fixed, _ = split_path(template)
    filled = _filled(steps, path)
    if any(step in (".", "..") for step in filled.split("/")):
        raise InvalidArguments("A part of the address must not be . or ..")
    # The secret is the administrator's, whatever the document calls a parameter.
    gone = {tools.auth_name} if tools.auth == "query" else set()
    own = [_filled(pair, path) for pair in fixed.split("&") if names_in(pair) - gone]
    query = [*own, *query]
    url = tools.base_url.rstrip("/") + filled + ("?" + "&".join(query) if query else "")
    if len(url) > MAX_ADDRESS_CHARS:
        raise InvalidArguments(f"The arguments make an address of more than {MAX_ADDRESS_CHARS} characters.")
    return url


def _filled(template: str, path: dict[str, str]) -> str:
    pieces = VARIABLE.split(template)
    for at, piece in enumerate(pieces):
        if at % 2 and piece not in path:
            raise InvalidArguments(f"{piece[:40]!r} must not be empty: it is part of the address.")
        pieces[at] = path[piece] if at % 2 else quote(piece, safe="/%:@!$&'()*+,;=~")
    return "".join(pieces)


def _text(value: Any) -> str:
    """Return one value as parameters say it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else msgspec.json.encode(value).decode()


def _quoted(value: Any) -> str:
    return quote(_text(value), safe="")


def _in_query(argument: HttpArgument, value: Any) -> list[str]:
    name = quote(argument.target, safe="")
    if argument.as_json:
        return [f"{name}={quote(msgspec.json.encode(value).decode(), safe='')}"]
    separator = _SEPARATORS.get(argument.style, ",")
    if isinstance(value, dict):
        if argument.style == "deepObject":
            return [f"{name}%5B{quote(key, safe='')}%5D={_quoted(inner)}" for key, inner in value.items()]
        if argument.explode:
            return [f"{quote(key, safe='')}={_quoted(inner)}" for key, inner in value.items()]
        value = [part for pair in value.items() for part in pair]
    if not isinstance(value, list):
        return [f"{name}={_quoted(value)}"]
    if argument.explode:
        return [f"{name}={_quoted(inner)}" for inner in value]
    return [f"{name}={separator.join(_quoted(inner) for inner in value)}"] if value else []


def _in_form(argument: HttpArgument, value: Any) -> list[str]:
    if not argument.style and isinstance(value, dict):
        argument = msgspec.structs.replace(argument, as_json=True)
    return _in_query(argument, value)


def _simple(argument: HttpArgument, value: Any) -> list[str]:
    """Return the parts of a value in the style ``simple``, to be joined by commas."""
    if argument.as_json:
        return [msgspec.json.encode(value).decode()]
    if isinstance(value, dict):
        if argument.explode:
            return [f"{key}={_text(inner)}" for key, inner in value.items()]
        return [_text(part) for pair in value.items() for part in pair]
    return [_text(inner) for inner in value] if isinstance(value, list) else [_text(value)]


def _in_header(argument: HttpArgument, value: Any) -> str:
    text = ",".join(_simple(argument, value)).strip()
    if not HEADER_VALUE.fullmatch(text):
        raise InvalidArguments(f"{argument.name!r} must be printable ASCII: it is sent in a header.")
    return text


def _in_path(argument: HttpArgument, value: Any) -> str:
    parts = _simple(argument, value)
    if argument.explode and isinstance(value, dict):
        text = ",".join(f"{quote(key, safe='')}={_quoted(inner)}" for key, inner in value.items())
    else:
        text = ",".join(quote(part, safe="") for part in parts)
    if not text:
        raise InvalidArguments(f"{argument.name!r} must not be empty: it is part of the address.")
    return text
