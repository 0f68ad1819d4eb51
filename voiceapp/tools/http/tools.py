"""HTTP tools of one session: offered as functions, their arguments checked, their calls made from here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

import httpx2
from jsonschema import Draft202012Validator

from voiceapp.assistants.http_tools import MAX_HTTP_TOOLS, HttpOperation, HttpToolsConfig
from voiceapp.errors import InvalidArguments, ToolFailed, UnknownTool
from voiceapp.outbound.guard import Guard
from voiceapp.tools.functions import (
    MAX_OUTPUT_CHARS,
    AskFirst,
    as_text,
    definition,
    name_of,
    offered,
    read_arguments,
)
from voiceapp.tools.http.operation import is_json
from voiceapp.tools.http.request import Prepared, prepare
from voiceapp.tools.registry import ToolContext
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

CALL_S: Final = 30.0
"""Longest call, connecting and reading included."""
AT_ONCE: Final = 8
"""Calls of one session at once: one shall not hold the process's sockets."""
MAX_BYTES: Final = 4 * MAX_OUTPUT_CHARS
"""Read of an answer: no character takes more than four bytes, and the rest would be cut anyway."""
MAX_FAULT_CHARS: Final = 1_000
"""Of an answer's text that goes with its status of failure."""
_TIMEOUTS: Final = {"connect": 10.0, "read": CALL_S, "write": 10.0, "pool": 10.0}
_REDIRECT, _FAILURE = 300, 400


class HttpTools:
    """The HTTP tools of one session. ``taken`` are the names of its other functions."""

    def __init__(
        self, sets: Iterable[HttpToolsConfig], taken: Iterable[str], *, private_allowed: bool
    ) -> None:
        self._private_allowed = private_allowed
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._tools: dict[str, tuple[HttpToolsConfig, HttpOperation]] = {}
        names = set(taken)
        for tools in sets:
            for operation in tools.operations[: MAX_HTTP_TOOLS - len(self._tools)]:
                name = name_of(tools.slug, operation.plain_name, names)
                names.add(name)
                self._tools[name] = (tools, operation)

    def names(self) -> list[str]:
        """Return the functions' names."""
        return list(self._tools)

    def has(self, function: str) -> bool:
        """Whether a function is one of these."""
        return function in self._tools

    def definitions(self) -> list[JsonObject]:
        """Return the tools as ``session.update`` wants them (Realtime API, ``session.tools``)."""
        return offered(
            definition(name, operation.description, operation.parameters)
            for name, (_, operation) in self._tools.items()
        )

    def ask_first(self) -> dict[str, AskFirst]:
        """Return those that are called only once the user allows it: of which service, and its name there."""
        return {
            name: AskFirst(tools.name or tools.slug, operation.plain_name)
            for name, (tools, operation) in self._tools.items()
            if operation.key in tools.asked
        }

    async def run(self, function: str, arguments: str, context: ToolContext) -> str:
        """Call an operation with the model's raw arguments; return what came back as text.

        Raises ``UnknownTool``, ``InvalidArguments`` or ``ToolFailed``; never anything else.
        """
        if function not in self._tools:
            raise UnknownTool(f"There is no tool {function[:64]!r}.")
        tools, operation = self._tools[function]
        given = await asyncio.to_thread(_read, operation, arguments)
        try:
            request = prepare(tools, operation, given, context.idempotency_key)
        except (OverflowError, ValueError):
            raise InvalidArguments("The arguments do not fit: a number is too large.") from None
        async with self._turns:
            context.progress(f"Asking {tools.name or tools.slug}…")
            try:
                async with asyncio.timeout(CALL_S):
                    return as_text(function, tools.scrub(await self._call(request)))
            except TimeoutError:
                sentence = f"{tools.name or tools.slug} did not answer within {CALL_S:g} seconds."
                raise ToolFailed(sentence, code="timeout") from None
            except ToolFailed as error:
                raise ToolFailed(tools.scrub(error.message), code=error.code) from None
            except Exception as error:
                # The text of others' exceptions may hold the address, and with it the secret.
                logger.error("the HTTP tool %s failed (%s)", function, type(error).__name__)
                raise ToolFailed(f"{function} failed ({type(error).__name__}).") from None

    async def _call(self, request: Prepared) -> str:
        # In a thread, as certificates are read for it.
        guard = await asyncio.to_thread(Guard, private_allowed=self._private_allowed, who="service")
        try:
            response = await guard.handle_async_request(
                httpx2.Request(
                    request.method,
                    request.url,
                    headers=request.headers,
                    content=request.content,
                    extensions={"timeout": _TIMEOUTS},
                )
            )
            try:
                return await _text_of(response)
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            fault = guard.fault or f"The service's answer broke off ({type(error).__name__})."
            raise ToolFailed(fault, code="service_unreachable") from None
        finally:
            await guard.aclose()


def _read(operation: HttpOperation, arguments: str) -> dict[str, Any]:
    """Return arguments that fit an operation's schema; raise ``InvalidArguments``."""
    given = read_arguments(arguments, dict[str, Any])
    try:
        fault = next(Draft202012Validator(operation.parameters).iter_errors(given), None)
    except RecursionError as error:
        raise InvalidArguments(f"The arguments do not fit: {error}.") from None
    if fault is not None:
        where = ".".join(str(step) for step in fault.absolute_path)
        raise InvalidArguments(
            f"The arguments do not fit: {where + ': ' if where else ''}{fault.message[:300]}."
        )
    return given


async def _text_of(response: httpx2.Response) -> str:
    """Return what an answer says to the model; raise ``ToolFailed`` where it tells of a failure."""
    status = response.status_code
    kind = response.headers.get("content-type", "")
    essence = kind.partition(";")[0].strip().lower()
    readable = is_json(kind) or essence.startswith("text/") or not essence
    text = await _text(response) if readable else ""
    if status >= _FAILURE:
        said = f" It says: {text[:MAX_FAULT_CHARS]}" if text else ""
        raise ToolFailed(f"The service answered with HTTP status {status}.{said}", code="http_error")
    if status >= _REDIRECT:
        sentence = f"The service answered with HTTP status {status}, a redirect, which is not followed."
        raise ToolFailed(sentence, code="http_error")
    if text:
        return text
    if not readable:
        return f"The call succeeded (HTTP {status}); what it brought is {essence[:60]}, which cannot be read."
    return f"The call succeeded (HTTP {status}) and brought nothing."


async def _text(response: httpx2.Response) -> str:
    """Return an answer's text, no more of it than is told."""
    parts: list[bytes] = []
    size = 0
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for part in response.stream:
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            break
    charset = response.charset_encoding or "utf-8"
    try:
        return b"".join(parts).decode(charset, "replace").strip()
    except (LookupError, UnicodeError):
        return b"".join(parts).decode("utf-8", "replace").strip()
