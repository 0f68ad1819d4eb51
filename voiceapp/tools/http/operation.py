"""One operation of an OpenAPI document as a tool: its parameters and its body in one object; pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

import msgspec

from voiceapp.assistants.http_tools import IDEMPOTENCY_KEY, HttpArgument, HttpOperation, Place
from voiceapp.assistants.mcp_servers import HEADER_NAME, HEADER_VALUE, OWN_HEADERS
from voiceapp.tools.functions import MAX_DESCRIPTION_CHARS
from voiceapp.tools.http.schema import References, SchemaReader, Unsupported, fault, plain
from voiceapp.types import JsonObject

MAX_PARAMETERS: Final = 64
MAX_SCHEMA_CHARS: Final = 16_000
"""Characters of one tool's schema: models read it with every answer."""
MAX_KEY_CHARS: Final = 200
VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
"""A variable in a path or an address."""
FORM: Final = "application/x-www-form-urlencoded"
_ANY_JSON: Final = frozenset(("*/*", "application/*"))
"""Ranges of media types (RFC 9110, 12.5.1) that JSON is in."""
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")
_STYLES: Final = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
}
# OpenAPI says that parameters of these names are to be ignored; the last is set for each call.
_IGNORED: Final = frozenset(("accept", "content-type", "authorization", IDEMPOTENCY_KEY.lower()))


class Site:
    """Where an operation stands, and all that the document says of it."""

    def __init__(self, path: str, method: str, item: JsonObject, fields: JsonObject) -> None:
        self.path, self.method, self.item, self.fields = path, method, item, fields
        self.where = f"paths.{path[:100]}.{method}"

    @property
    def key(self) -> str:
        """What administrators call it: its ``operationId``, or its method and path."""
        named = self.fields.get("operationId")
        if named is None:
            return f"{self.method.upper()} {self.path}"
        if (
            not isinstance(named, str)
            or not 0 < len(named.strip()) <= MAX_KEY_CHARS
            or not named.isprintable()
        ):
            raise fault(
                self.where, f"operationId must be text of up to {MAX_KEY_CHARS} printable characters."
            )
        return named.strip()

    def refuse_servers(self) -> None:
        """Raise ``Unsupported`` where it is at another address than the document's own."""
        if self.fields.get("servers") or self.item.get("servers"):
            raise Unsupported("it has servers of its own; give the set an address to call it there")


def read_operation(site: Site, references: References, *, old: bool) -> HttpOperation:
    """Return the operation that stands at a place; ``old`` is OpenAPI 3.0.

    Raises ``DocumentFault``, and ``Unsupported`` where it is right but cannot be called from here.
    """
    return _Operation(site, references, old=old).read()


def length(schema: JsonObject) -> int:
    """Return how many characters a schema takes as JSON."""
    return len(msgspec.json.encode(schema).decode())


class _Operation:
    """Reads one operation; used once."""

    def __init__(self, site: Site, references: References, *, old: bool) -> None:
        self._site = site
        self._references = references
        self._schemas = SchemaReader(references, old=old)
        self._properties: JsonObject = {}
        self._required: list[str] = []
        self._arguments: list[HttpArgument] = []
        self._body_required = False
        self._body_type = "application/json"

    def read(self) -> HttpOperation:
        """Return the operation; raises ``DocumentFault``, ``Unsupported`` among them."""
        site = self._site
        in_path = set()
        for where, parameter in self._parameters():
            if parameter["in"] == "path":
                in_path.add(parameter["name"])
            self._parameter(where, parameter)
        path, query, fragment = split_path(site.path)
        if gone := set(VARIABLE.findall(fragment)) - set(VARIABLE.findall(path + query)):
            raise Unsupported(f"its path has {min(gone)[:40]!r} behind a #, where nothing is sent")
        variables = set(VARIABLE.findall(site.path))
        for name in sorted(variables ^ in_path):
            wrong = "is in the path, but no parameter" if name in variables else "is not in the path"
            raise fault(site.where, f"the path parameter {name[:60]!r} {wrong}.")
        if site.method not in ("get", "head") and "requestBody" in site.fields:
            self._body()
        schema: JsonObject = {"type": "object", "properties": self._properties, "additionalProperties": False}
        if self._required:
            schema["required"] = self._required
        if length(schema) > MAX_SCHEMA_CHARS:
            raise Unsupported(f"its arguments take more than {MAX_SCHEMA_CHARS} characters to describe")
        return HttpOperation(
            key=site.key,
            method=site.method.upper(),
            path=site.path,
            description=self._description(),
            parameters=schema,
            arguments=tuple(self._arguments),
            body_required=self._body_required,
            body_type=self._body_type,
        )

    def _description(self) -> str:
        texts = [self._site.fields.get(name) for name in ("summary", "description")]
        parts = [
            plain(text, MAX_DESCRIPTION_CHARS) for text in texts if isinstance(text, str) and text.strip()
        ]
        if len(parts) == 2 and parts[1].startswith(parts[0].rstrip(".")):
            del parts[0]
        if len(parts) == 2 and parts[0][-1] not in ".!?…":
            parts[0] += "."
        return plain(
            " ".join(parts) or f"{self._site.method.upper()} {self._site.path}", MAX_DESCRIPTION_CHARS
        )

    def _parameters(self) -> list[tuple[str, JsonObject]]:
        """Return the parameters, those of the path first; the operation's own replace them."""
        found: dict[tuple[str, str], tuple[str, JsonObject]] = {}
        for owner, base in ((self._site.item, self._site.where.rpartition(".")[0]), (self._site.fields, "")):
            listed = owner.get("parameters", [])
            base = base or self._site.where
            if not isinstance(listed, list):
                raise fault(f"{base}.parameters", "a list is expected here.")
            if len(listed) > MAX_PARAMETERS:
                raise Unsupported(f"it has more than {MAX_PARAMETERS} parameters")
            for at, node in enumerate(listed):
                where = f"{base}.parameters[{at}]"
                parameter = self._references.object(node, where)
                name, place = parameter.get("name"), parameter.get("in")
                if not isinstance(name, str) or not name:
                    raise fault(where, "it has no name.")
                if place not in ("path", "query", "header", "cookie"):
                    raise fault(where, '"in" must be path, query, header or cookie.')
                found[name, place] = (where, parameter)
        return list(found.values())

    def _parameter(self, where: str, parameter: JsonObject) -> None:
        name, place = parameter["name"], parameter["in"]
        required = parameter.get("required") is True or place == "path"
        if place == "cookie":
            if required:
                raise Unsupported(f"it needs the cookie {name[:40]!r}")
            return
        if place == "header":
            if name.lower() in _IGNORED:
                return
            if not HEADER_NAME.fullmatch(name) or name.lower() in OWN_HEADERS:
                raise fault(where, f"{name[:40]!r} is no header that can be set.")
        if place == "query" and name in names_in(split_path(self._site.path)[1]):
            # The path has given it its value.
            return
        schema, as_json = self._schema_of(parameter, where)
        style = parameter.get("style", _STYLES[place][0])
        if style not in _STYLES[place]:
            raise Unsupported(f"its parameter {name[:40]!r} has the style {str(style)[:20]!r}")
        explode = parameter.get("explode", style == "form")
        if not isinstance(explode, bool):
            raise fault(where, "explode must be true or false.")
        described = parameter.get("description")
        if "description" not in schema and isinstance(described, str) and described.strip():
            schema = {**schema, "description": plain(described, 500)}
        self._add(name, place, schema, required=required, style=style, explode=explode, as_json=as_json)

    def _schema_of(self, parameter: JsonObject, where: str) -> tuple[JsonObject, bool]:
        if "schema" in parameter:
            return self._schemas.read(parameter["schema"], f"{where}.schema"), False
        content = parameter.get("content")
        if not isinstance(content, dict) or len(content) != 1:
            raise fault(where, "it needs a schema.")
        ((kind, media),) = content.items()
        if not is_json(kind):
            raise Unsupported(f"its parameter {parameter['name'][:40]!r} is {kind[:40]!r}, not JSON")
        media = self._references.object(media, f"{where}.content")
        return self._schemas.read(media.get("schema", True), f"{where}.content.schema"), True

    def _body(self) -> None:
        where = f"{self._site.where}.requestBody"
        body = self._references.object(self._site.fields["requestBody"], where)
        content = body.get("content")
        if not isinstance(content, dict) or not content:
            raise fault(where, "it needs content.")
        self._body_required = body.get("required") is True
        kind = next((kind for kind in content if sent_as(kind)), None)
        kind = kind or next((kind for kind in content if _essence(kind) == FORM), None)
        if kind is None:
            if self._body_required:
                raise Unsupported(f"its body is {next(iter(content))[:40]!r}, not JSON or a form")
            return
        where = f"{where}.content.{kind[:40]}"
        media = self._references.object(content[kind], where)
        schema = self._schemas.read(media.get("schema", True), f"{where}.schema")
        flat = flattened(schema)
        if not sent_as(kind):
            self._form(media, flat, where)
            return
        self._body_type = sent_as(kind)
        if flat is None:
            self._add("body", "whole body", schema, required=self._body_required, as_json=True)
            return
        properties, required = flat
        for name, inner in properties.items():
            needed = self._body_required and name in required
            self._add(name, "body", inner, required=needed, as_json=True)

    def _form(self, media: JsonObject, flat: tuple[JsonObject, set[str]] | None, where: str) -> None:
        """Take a form's fields, which are written as a query's parameters are (OpenAPI, Encoding Object)."""
        if flat is None:
            if self._body_required:
                raise Unsupported("its body is a form of which the document names no fields")
            return
        self._body_type = FORM
        encodings = media.get("encoding", {})
        if not isinstance(encodings, dict):
            raise fault(f"{where}.encoding", "an object is expected here.")
        properties, required = flat
        for name, inner in properties.items():
            encoding = self._references.object(encodings.get(name, {}), f"{where}.encoding")
            # Without a style, what is no plain value is written as JSON.
            style = encoding.get("style", "")
            if style and style not in _STYLES["query"]:
                raise Unsupported(f"its field {name[:40]!r} has the style {str(style)[:20]!r}")
            explode = encoding.get("explode", style in ("", "form"))
            if not isinstance(explode, bool):
                raise fault(f"{where}.encoding", "explode must be true or false.")
            as_json = isinstance(kind := encoding.get("contentType"), str) and is_json(kind)
            needed = self._body_required and name in required
            self._add(name, "body", inner, required=needed, style=style, explode=explode, as_json=as_json)

    def _add(
        self,
        target: str,
        place: Place,
        schema: JsonObject,
        *,
        required: bool,
        style: str = "",
        explode: bool = False,
        as_json: bool = False,
    ) -> None:
        plain_name = _NOT_IN_A_NAME.sub("_", target)[:64] or "value"
        name, number = plain_name, 1
        while name in self._properties:
            end = f"_{place.split()[-1]}" if number == 1 else f"_{number}"
            name, number = f"{plain_name[: 64 - len(end)]}{end}", number + 1
        self._properties[name] = schema
        if required:
            self._required.append(name)
        self._arguments.append(
            HttpArgument(name=name, target=target, place=place, style=style, explode=explode, as_json=as_json)
        )


def split_path(template: str) -> tuple[str, str, str]:
    """Return the path, query and fragment of a path's template (RFC 3986, 3); variables stay whole."""
    hidden = VARIABLE.sub(lambda found: "_" * len(found[0]), template)
    end = len(hidden.partition("#")[0])
    start = len(hidden[:end].partition("?")[0])
    return template[:start], template[start + 1 : end], template[end + 1 :]


def names_in(query: str) -> set[str]:
    """Return the names to which a path's own query gives values."""
    return {unquote_plus(pair.partition("=")[0]) for pair in query.split("&") if pair}


def sent_as(kind: str) -> str:
    """Return the media type under which JSON is sent where a document names ``kind``; empty if it is none."""
    if _essence(kind) in _ANY_JSON:
        return "application/json"
    fits = is_json(kind) and "*" not in kind and HEADER_VALUE.fullmatch(kind)
    return kind.strip() if fits else ""


def _essence(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def is_json(kind: str) -> bool:
    """Whether a media type is JSON."""
    essence = _essence(kind)
    return essence == "application/json" or (essence.startswith("application/") and essence.endswith("+json"))


def flattened(schema: JsonObject) -> tuple[JsonObject, set[str]] | None:
    """Return the properties of a schema of objects and which are required; ``None`` where it is another.

    Objects that are put together by ``allOf`` are one.
    """
    if schema.keys() & {"anyOf", "oneOf", "not", "enum", "const"}:
        return None
    kinds = schema.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        return None
    properties: JsonObject = dict(schema.get("properties", {}))
    required = set(schema.get("required", ()))
    for part in schema.get("allOf", ()):
        inner = flattened(part)
        if inner is None:
            return None
        properties |= inner[0]
        required |= inner[1]
    return (properties, required) if properties else None
