"""One operation of an OpenAPI document as a tool: its parameters and its JSON body in one object; pure."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from voiceapp.assistants.http_tools import IDEMPOTENCY_KEY, HttpArgument, HttpOperation, Place
from voiceapp.assistants.mcp_servers import HEADER_NAME, OWN_HEADERS
from voiceapp.tools.functions import MAX_DESCRIPTION_CHARS
from voiceapp.tools.http.schema import References, SchemaReader, Unsupported, fault, plain
from voiceapp.types import JsonObject

MAX_PARAMETERS: Final = 64
MAX_SCHEMA_CHARS: Final = 16_000
"""Characters of one tool's schema: models read it with every answer."""
MAX_KEY_CHARS: Final = 200
VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
"""A variable in a path or an address."""
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

    def read(self) -> HttpOperation:
        """Return the operation; raises ``DocumentFault``, ``Unsupported`` among them."""
        site = self._site
        in_path = set()
        for where, parameter in self._parameters():
            if parameter["in"] == "path":
                in_path.add(parameter["name"])
            self._parameter(where, parameter)
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
        kind = next((kind for kind in content if is_json(kind)), None)
        if kind is None:
            if self._body_required:
                raise Unsupported(f"its body is {next(iter(content))[:40]!r}, not JSON")
            return
        media = self._references.object(content[kind], f"{where}.content.{kind[:40]}")
        schema = self._schemas.read(media.get("schema", True), f"{where}.content.{kind[:40]}.schema")
        flat = flattened(schema)
        if flat is None:
            self._add("body", "whole body", schema, required=self._body_required, as_json=True)
            return
        properties, required = flat
        for name, inner in properties.items():
            needed = self._body_required and name in required
            self._add(name, "body", inner, required=needed, as_json=True)

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


def is_json(kind: str) -> bool:
    """Whether a media type is JSON."""
    essence = kind.partition(";")[0].strip().lower()
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
