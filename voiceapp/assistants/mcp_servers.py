"""MCP servers that an assistant names: their shape, their limits and their secrets; pure.

The shape is that of the Realtime API's tools of ``type: "mcp"``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from voiceapp.outbound.addresses import scheme_of
from voiceapp.types import JsonObject

MAX_SERVERS: Final = 8
MAX_TOOLS: Final = 128
MAX_URL_CHARS: Final = 2048
MAX_SECRET_CHARS: Final = 8192
MAX_TOOL_NAME_CHARS: Final = 256
MAX_HEADERS: Final = 16
LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What HTTP lets stand in a header; a line break would let one smuggle in others.
HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
# These belong to the connection, not to its user.
OWN_HEADERS: Final = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "content-type", "accept", "accept-encoding")
)
HIDDEN: Final = "•••"
MIN_SECRET_CHARS: Final = 4


class ToolFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Some of a server's tools."""

    tool_names: tuple[str, ...] | None = None
    read_only: bool | None = None


class ApprovalRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which tools the user is asked about; what is in both, or in neither, is asked."""

    always: ToolFilter | None = None
    never: ToolFilter | None = None


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One server. ``authorization`` is a bearer token; it and ``headers`` are secrets."""

    server_label: str
    server_url: str
    server_description: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    require_approval: Literal["always", "never"] | ApprovalRule = "always"
    authorization: str | None = None
    headers: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"McpServer({self.server_label!r})"

    def to_ga(self) -> JsonObject:
        """Return the server as ``session.update`` wants it among ``session.tools``."""
        fields: JsonObject = msgspec.json.decode(msgspec.json.encode(self))
        return {"type": "mcp", "require_approval": "always", **fields}

    def sent_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers for the server's requests; ``authorization`` goes before one among them."""
        return headers_with(self.headers, self.authorization)

    def without_secrets(self) -> McpServer:
        """Return the server as it may be kept and shown: which secrets there are, but none of them."""
        hidden = dict.fromkeys(self.headers or {}, HIDDEN)
        # Tokens are wanted in the address by some servers.
        address = urlsplit(self.server_url)
        host = address.netloc.rpartition("@")[2]
        query = HIDDEN if address.query else ""
        return msgspec.structs.replace(
            self,
            server_url=address._replace(netloc=host, query=query, fragment="").geturl(),
            authorization=HIDDEN if self.authorization else None,
            headers=hidden or None,
        )

    def secrets(self) -> set[str]:
        """Return every text that must not be shown."""
        values = {self.authorization or "", *(self.headers or {}).values()}
        for value in list(values):
            # "Bearer TOKEN" in a header is quoted with and without its first word.
            values.add(value.rpartition(" ")[2])
        address = urlsplit(self.server_url)
        values |= {address.query, address.password or ""}
        return {value for value in values if len(value) >= MIN_SECRET_CHARS}

    def faults(self, *, private_allowed: bool) -> list[str]:
        """Return what is wrong with it, in sentences without its secrets."""
        found = []
        if not LABEL.fullmatch(self.server_label):
            found.append("A server_label is 1 to 64 letters, digits, hyphens or underscores.")
        if len(self.server_url) > MAX_URL_CHARS:
            found.append(f"A server_url may have {MAX_URL_CHARS} characters at most.")
        elif scheme_of(self.server_url) not in (("https", "http") if private_allowed else ("https",)):
            found.append("A server_url is an https:// address.")
        if len(self.server_description or "") > 1024:
            found.append("A server_description may have 1024 characters at most.")
        found += self._header_faults()
        rule = self.require_approval
        sides = (rule.always, rule.never) if isinstance(rule, ApprovalRule) else ()
        named = [self.allowed_tools, *(side.tool_names for side in sides if side is not None)]
        if any(len(names or ()) > MAX_TOOLS for names in named):
            found.append(f"A list may name {MAX_TOOLS} tools at most.")
        if any(not 0 < len(name) <= MAX_TOOL_NAME_CHARS for names in named for name in names or ()):
            found.append(f"A tool's name has 1 to {MAX_TOOL_NAME_CHARS} characters.")
        return found

    def _header_faults(self) -> list[str]:
        headers = self.headers or {}
        found = []
        if len(headers) > MAX_HEADERS:
            found.append(f"A server may have {MAX_HEADERS} headers at most.")
        if any(not HEADER_NAME.fullmatch(name) or name.lower() in OWN_HEADERS for name in headers):
            found.append("A header has a name that cannot be set.")
        for value in (self.authorization or "", *headers.values()):
            if len(value) > MAX_SECRET_CHARS or not HEADER_VALUE.fullmatch(value):
                found.append(
                    f"Secrets and headers are printable ASCII, {MAX_SECRET_CHARS} characters at most."
                )
                break
        return found


def headers_with(headers: Mapping[str, str] | None, authorization: str | None) -> tuple[tuple[str, str], ...]:
    """Return a server's headers and its token; the token goes before an ``Authorization`` among them."""
    if not authorization:
        return tuple((headers or {}).items())
    others = [(name, value) for name, value in (headers or {}).items() if name.lower() != "authorization"]
    return (*others, ("Authorization", f"Bearer {authorization}"))


def read_servers(value: object, *, private_allowed: bool) -> tuple[McpServer, ...]:
    """Return the servers of an assistant's field. Raises ``ValueError`` with a sentence."""
    try:
        servers = msgspec.convert(value, tuple[McpServer, ...])
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}.") from None
    if len(servers) > MAX_SERVERS:
        raise ValueError(f"An assistant may have {MAX_SERVERS} MCP servers at most.")
    labels = [server.server_label for server in servers]
    if len(set(labels)) < len(labels):
        raise ValueError("Every MCP server needs a server_label of its own.")
    for server in servers:
        if faults := server.faults(private_allowed=private_allowed):
            raise ValueError(f"{server.server_label[:64]}: {' '.join(faults)}")
    return servers


def scrub(text: str, servers: tuple[McpServer, ...]) -> str:
    """Return a service's text without the servers' secrets, whether as they are or escaped as in JSON."""
    for secret in {secret for server in servers for secret in server.secrets()}:
        text = text.replace(secret, HIDDEN).replace(msgspec.json.encode(secret).decode()[1:-1], HIDDEN)
    return text
