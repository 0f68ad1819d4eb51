"""Reading an OpenAPI document (3.0 or 3.1, JSON): its operations, each as a tool; pure.

What is wrong with a document is told with its place. What is right but cannot be called from here is left
out, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NoReturn

import msgspec

from voiceapp.assistants.http_tools import MAX_OPERATIONS, HttpOperation
from voiceapp.tools.http.operation import VARIABLE, Site, length, read_operation
from voiceapp.tools.http.schema import DocumentFault, References, Unsupported, fault, plain
from voiceapp.types import JsonObject

MAX_DOCUMENT_BYTES: Final = 1_500_000
"""In UTF-8: a form that brings it must stay below what Django takes, 2.5 MB."""
MAX_SCHEMAS_CHARS: Final = 128_000
"""Characters of all schemas of a set."""
_METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
_VERSION: Final = re.compile(r"3\.([01])(\.[0-9]+)?")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a document offers. ``base_url`` is empty where it does not say a whole address.

    ``left_out`` are the keys of operations that cannot be called, each with the reason.
    """

    title: str
    base_url: str
    operations: tuple[HttpOperation, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def read_document(text: str, wanted: tuple[str, ...] = (), *, fixed_address: bool = False) -> Document:
    """Return what a document offers: the operations of the keys ``wanted``, or all.

    ``fixed_address`` is whether operations that have servers of their own are called at the set's address
    all the same. Raises ``DocumentFault`` with a sentence that says where and what; one that is wanted and
    cannot be called is a fault as well.
    """
    root = _parse(text)
    old = _version(root) == "0"
    references = References(root)
    found = dict(_found(root, references))
    for key in wanted:
        if key not in found:
            known = ", ".join(list(found)[:20]) or "none"
            raise DocumentFault(f"There is no operation {key[:80]!r} in the document. There are: {known}.")
    if not wanted and len(found) > MAX_OPERATIONS:
        sentence = f"name up to {MAX_OPERATIONS} of them as those to be offered"
        raise DocumentFault(f"The document has {len(found)} operations; {sentence}.")
    operations, left_out = [], []
    for key, site in found.items():
        if wanted and key not in wanted:
            continue
        try:
            if not fixed_address:
                site.refuse_servers()
            operations.append(read_operation(site, references, old=old))
        except Unsupported as error:
            if wanted:
                raise DocumentFault(f"{site.where}: it cannot be called, {error.message}.") from None
            left_out.append((key, error.message))
    if sum(length(operation.parameters) for operation in operations) > MAX_SCHEMAS_CHARS:
        raise DocumentFault(
            f"All arguments together take more than {MAX_SCHEMAS_CHARS} characters to describe."
        )
    info = root.get("info")
    title = info.get("title") if isinstance(info, dict) else None
    return Document(
        title=plain(title, 100) if isinstance(title, str) else "",
        base_url=_base_url(root, references),
        operations=tuple(operations),
        left_out=tuple(left_out),
    )


# -- the document -----------------------------------------------------------------------------------------


def _parse(text: str) -> JsonObject:
    if len(text.encode("utf-8", "replace")) > MAX_DOCUMENT_BYTES:
        raise DocumentFault(f"The document may have {MAX_DOCUMENT_BYTES:,} bytes at most.")
    try:
        root = json.loads(text.removeprefix("\ufeff"), parse_constant=_no_number)
        # What cannot be written again cannot be sent: halves of characters, numbers without end.
        json.dumps(root, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        yaml = (
            "" if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")) else " YAML has to be made JSON first."
        )
        where = f"line {error.lineno}, column {error.colno}"
        raise DocumentFault(f"The document is no JSON: {error.msg} in {where}.{yaml}") from None
    except RecursionError:
        raise DocumentFault("The document is nested too deeply.") from None
    except ValueError:
        raise DocumentFault("The document has a number or a character that JSON does not know.") from None
    if not isinstance(root, dict):
        raise DocumentFault("The document must be a JSON object.")
    return root


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _version(root: JsonObject) -> str:
    """Return the minor version, "0" or "1"."""
    version = root.get("openapi")
    if version is None and "swagger" in root:
        raise DocumentFault("This is Swagger 2; OpenAPI 3.0 or 3.1 is needed.")
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        raise DocumentFault('openapi: the document must say "3.0.x" or "3.1.x".')
    return found[1]


def _found(root: JsonObject, references: References) -> Iterator[tuple[str, Site]]:
    paths = root.get("paths", {})
    if not isinstance(paths, dict):
        raise fault("paths", "an object is expected here.")
    seen: dict[str, str] = {}
    for path, node in paths.items():
        if path.startswith("x-"):
            continue
        if not path.startswith("/"):
            raise fault(f"paths.{path[:100]}", "a path begins with /.")
        item = references.object(node, f"paths.{path[:100]}")
        for method in _METHODS:
            if method not in item:
                continue
            site = Site(path, method, item, references.object(item[method], f"paths.{path[:100]}.{method}"))
            if site.key in seen:
                raise fault(site.where, f"{site.key!r} is the operationId of {seen[site.key]} too.")
            seen[site.key] = site.where
            yield site.key, site
    if not seen:
        raise fault("paths", "the document has no operations.")


def _base_url(root: JsonObject, references: References) -> str:
    servers = root.get("servers")
    if not servers:
        return ""
    if not isinstance(servers, list):
        raise fault("servers", "a list is expected here.")
    server = references.object(servers[0], "servers[0]")
    url, variables = server.get("url"), server.get("variables", {})
    if not isinstance(url, str):
        raise fault("servers[0]", "url must be text.")
    if not isinstance(variables, dict):
        raise fault("servers[0].variables", "an object is expected here.")

    def value(found: re.Match[str]) -> str:
        variable = variables.get(found[1])
        default = variable.get("default") if isinstance(variable, dict) else None
        if not isinstance(default, str):
            raise fault("servers[0]", f"its variable {found[1][:40]!r} has no default.")
        return default

    url = VARIABLE.sub(value, url)
    return url if "://" in url else ""


__all__ = ["Document", "DocumentFault", "read_document"]
