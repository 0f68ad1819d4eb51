"""HTTP tools that an assistant may use: operations of services that an OpenAPI document describes; pure.

A set is one service: its address, its secret, and those of its operations that are offered.
"""

from __future__ import annotations

import re
from typing import Final, Literal
from urllib.parse import quote, urlsplit

import msgspec

from voiceapp.assistants.mcp_servers import (
    HEADER_NAME,
    HEADER_VALUE,
    HIDDEN,
    MAX_SECRET_CHARS,
    MAX_URL_CHARS,
    MIN_SECRET_CHARS,
    OWN_HEADERS,
)
from voiceapp.outbound.addresses import scheme_of
from voiceapp.types import JsonObject

MAX_SETS: Final = 8
"""Sets of one assistant."""
MAX_OPERATIONS: Final = 64
"""Operations that one set offers."""
MAX_HTTP_TOOLS: Final = 100
"""Operations that all sets of one assistant offer: services take 128 tools, and it has others."""
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
"""Methods that change nothing (RFC 9110, 9.2.1)."""
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")

Auth = Literal["", "bearer", "header", "query"]
Place = Literal["path", "query", "header", "body", "whole body"]


class HttpArgument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument: the model calls it ``name``, the service ``target``, and wants it at ``place``.

    ``style`` and ``explode`` are OpenAPI's; ``as_json`` is a parameter that is JSON itself.
    """

    name: str
    target: str
    place: Place
    style: str = ""
    explode: bool = False
    as_json: bool = False


class HttpOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation; ``parameters`` is the JSON Schema of its arguments, ``path`` a template.

    ``key`` is what administrators call it: its ``operationId``, or its method and path. ``body_type`` is the
    media type of its body, as the document names it.
    """

    key: str
    method: str
    path: str
    description: str
    parameters: JsonObject
    arguments: tuple[HttpArgument, ...] = ()
    body_required: bool = False
    body_type: str = "application/json"

    @property
    def plain_name(self) -> str:
        """What a function for it is called, in letters, digits, hyphens and underscores."""
        name = _NOT_IN_A_NAME.sub("_", self.key).strip("_") or "call"
        return name.lower() if self.key == f"{self.method} {self.path}" else name

    def without(self, place: Place, target: str) -> HttpOperation:
        """Return the operation without one of its parameters; a header's name may be in any case."""
        same = (lambda name: name.lower() == target.lower()) if place == "header" else target.__eq__
        gone = {one.name for one in self.arguments if one.place == place and same(one.target)}
        if not gone:
            return self
        properties = self.parameters["properties"]
        left = {name: schema for name, schema in properties.items() if name not in gone}
        parameters = {**self.parameters, "properties": left}
        if "required" in parameters:
            parameters["required"] = [name for name in parameters["required"] if name not in gone]
        arguments = tuple(one for one in self.arguments if one.name not in gone)
        return msgspec.structs.replace(self, parameters=parameters, arguments=arguments)

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method not in SAFE_METHODS


class HttpToolsConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One service as a session calls it.

    ``secret`` goes where ``auth`` says, under ``auth_name`` where that is asked for.
    ``asked`` are the keys of the operations that the user is asked about before each call.
    """

    slug: str
    name: str = ""
    base_url: str = ""
    auth: Auth = ""
    auth_name: str = ""
    secret: str = ""
    operations: tuple[HttpOperation, ...] = ()
    asked: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"HttpToolsConfig({self.slug!r})"

    def without_secrets(self) -> HttpToolsConfig:
        """Return the set as it may be kept with sessions: by its name alone."""
        return HttpToolsConfig(slug=self.slug, name=self.name)

    def headers(self) -> dict[str, str]:
        """Return the header that bears the secret, if one does."""
        if self.auth == "bearer":
            return {"Authorization": f"Bearer {self.secret}"}
        return {self.auth_name: self.secret} if self.auth == "header" else {}

    def query(self) -> str:
        """Return the part of an address's query that bears the secret, if one does."""
        if self.auth != "query":
            return ""
        return f"{quote(self.auth_name, safe='')}={quote(self.secret, safe='')}"

    def scrub(self, text: str) -> str:
        """Return a service's text without the secret, however it is written in it."""
        if len(self.secret) < MIN_SECRET_CHARS:
            return text
        written = {self.secret, self.secret.rpartition(" ")[2], quote(self.secret, safe="")}
        written |= {msgspec.json.encode(self.secret).decode()[1:-1]}
        for secret in sorted(written, key=len, reverse=True):
            if len(secret) >= MIN_SECRET_CHARS:
                text = text.replace(secret, HIDDEN)
        return text


def address_fault(url: str, *, private_allowed: bool) -> str:
    """Return what is wrong with a service's address, a sentence, or nothing."""
    schemes = ("https", "http") if private_allowed else ("https",)
    if (
        scheme_of(url) not in schemes
        or len(url) > MAX_URL_CHARS
        or not HEADER_VALUE.fullmatch(url)
        or " " in url
    ):
        return f"The service's address must be an {schemes[0]}:// address, not {url[:80]!r}."
    parts = urlsplit(url)
    if parts.query or parts.fragment or "@" in parts.netloc:
        return "The service's address must have no user name, no query and no fragment."
    return ""


def secret_fault(auth: str, auth_name: str, secret: str) -> tuple[str, str]:
    """Return (field, sentence) for what is wrong with how a service is signed in to, or two empty texts."""
    if auth in ("header", "query") and not auth_name:
        return "auth_name", "Name the header or the query parameter."
    if auth == "header" and not (HEADER_NAME.fullmatch(auth_name) and auth_name.lower() not in OWN_HEADERS):
        return "auth_name", "This is no header that can be set."
    if auth == "header" and auth_name.lower() == IDEMPOTENCY_KEY.lower():
        return "auth_name", f"{IDEMPOTENCY_KEY} is set for each call."
    if auth == "query" and not HEADER_VALUE.fullmatch(auth_name):
        return "auth_name", "A query parameter's name is printable ASCII."
    if auth and not secret:
        return "new_secret", "Give the secret."
    if len(secret) > MAX_SECRET_CHARS or not HEADER_VALUE.fullmatch(secret):
        return "new_secret", f"A secret is printable ASCII, {MAX_SECRET_CHARS} characters at most."
    return "", ""
