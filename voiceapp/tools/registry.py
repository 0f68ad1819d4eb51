"""Python functions as tools: described by their signature, validated, limited in time and size.

A function with type hints and a docstring becomes a tool::

    from voiceapp.tools.registry import ToolContext, tool

    @tool(timeout_s=5)
    async def opening_hours(shop: str, context: ToolContext) -> str:
        \"\"\"Tell when a shop is open.\"\"\"

Put it into a module ``voice_tools`` of a Django app of yours, and name the tool in the assistant. Its
description is the docstring's first paragraph, its JSON Schema comes from the signature; an argument
annotated with ``ToolContext`` is given by the session and not by the model. What a tool returns goes to the
model: text as it is, anything else as JSON.

``needs_approval=True`` lets a tool run only once the user has allowed that very call. ``preview=function``
names a function of ``arguments`` and ``capabilities``, asynchronous or not, that returns a ``Preview`` of
what a call would do: it is what the user is asked about, and what the tool then works on
(``context.preview``). One that returns ``None`` says that the call would change nothing, so that nobody need
be asked. Where nobody was asked, it is called right before the tool.
``progress="Looking that up…"`` is shown as soon as a call runs, and ``context.progress("…")`` what comes
later. A tool with a side effect gives ``context.idempotency_key`` to whoever has the effect: it is the same
if the call is repeated.

Asynchronous tools are cancelled when their session ends. Synchronous ones run in threads, see
``voiceapp.tools.threads``. That the user speaks meanwhile ends neither.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import typing
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any, TypeVar
from uuid import UUID, uuid5

import msgspec
from django.utils import timezone

from voiceapp.errors import ToolError, ToolFailed, UnknownTool
from voiceapp.tools.capabilities import Capabilities
from voiceapp.tools.functions import MAX_DESCRIPTION_CHARS, as_text, definition, offered, read_arguments
from voiceapp.tools.previews import Preview
from voiceapp.tools.threads import ToolThreads, tool_threads
from voiceapp.types import JsonObject

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 20.0
PREVIEW_S = 3.0
"""How long a tool may take to find out what a call would do: the user waits to be asked."""
MAX_PROGRESS_CHARS = 200
"""Longest sentence about what a tool is doing: it stands beside the tool's name."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ToolContext:
    """Who asks: a tool acts for this user, in this session.

    ``capabilities`` is what the session lets its tools do; ``None`` outside of a live session. ``zone`` is
    the user's time zone; ``None`` where it is not known. ``preview`` is what the tool's ``preview`` function
    found, ``None`` where there is none, or where the call would change nothing; ``shown``: the user was shown
    it, and allowed it.
    """

    session_id: UUID
    user_id: int
    call_id: str
    tell: Callable[[str], None] = field(default=lambda _: None, repr=False, compare=False)
    capabilities: Capabilities | None = None
    zone: tzinfo | None = None
    preview: Preview | None = None
    shown: bool = False

    def now(self) -> datetime:
        """Return the time in the user's time zone, or in the server's where that is not known."""
        return timezone.now().astimezone(self.zone or timezone.get_default_timezone())

    @property
    def session(self) -> Capabilities:
        """What the live session lets its tools do. Raises ``ToolFailed`` (``no_session``) outside of one."""
        if self.capabilities is None:
            raise ToolFailed("That can be done in a conversation only.", code="no_session")
        return self.capabilities

    @property
    def idempotency_key(self) -> str:
        """A key of this call alone, 32 characters: the same whenever the service repeats the call."""
        return uuid5(self.session_id, self.call_id).hex

    def progress(self, text: str) -> None:
        """Show the user what the tool is doing, in ``MAX_PROGRESS_CHARS``; from any thread."""
        self.tell(text[:MAX_PROGRESS_CHARS])


@dataclass(frozen=True)
class Tool:
    """One tool. ``parameters`` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: JsonObject
    timeout_s: float
    function: Callable[..., Any]
    arguments: type[msgspec.Struct]
    context_name: str | None
    needs_approval: bool = False
    progress: str = ""
    preview: Callable[..., Any] | None = None


class ToolRegistry:
    """Tools by name; synchronous ones run in ``threads``, by default those of the process."""

    def __init__(self, threads: ToolThreads | None = None) -> None:
        self._tools: dict[str, Tool] = {}
        self._threads = threads

    def add(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        timeout_s: float = DEFAULT_TIMEOUT_S,
        needs_approval: bool = False,
        progress: str = "",
        preview: Callable[..., Any] | None = None,
    ) -> Tool:
        """Make a function a tool. Raises ``ValueError`` where it cannot be one."""
        made = replace(
            _make(function, name or function.__name__, timeout_s),
            needs_approval=needs_approval,
            progress=progress[:MAX_PROGRESS_CHARS],
            preview=preview,
        )
        if made.name in self._tools:
            raise ValueError(f"there is a tool {made.name!r} already")
        self._tools[made.name] = made
        return made

    def ask_first(self, names: Iterable[str]) -> set[str]:
        """Return those of the named tools that run only once the user allows it."""
        return {name for name in names if name in self._tools and self._tools[name].needs_approval}

    def previews(self, name: str) -> bool:
        """Whether a tool can say beforehand what a call would do."""
        return name in self._tools and self._tools[name].preview is not None

    def names(self) -> list[str]:
        """Return all names, in order."""
        return sorted(self._tools)

    def definitions(self, names: Iterable[str]) -> list[JsonObject]:
        """Return those of the named tools that exist, as ``session.update`` wants them."""
        found = [self._tools[name] for name in names if name in self._tools]
        return offered(definition(one.name, one.description, one.parameters) for one in found)

    async def run(self, name: str, arguments: str, context: ToolContext, allowed: Iterable[str]) -> str:
        """Run a tool with the model's raw arguments; return its output as text.

        Raises ``UnknownTool``, ``InvalidArguments`` or ``ToolFailed``; never anything else.
        """
        found, read = self._read(name, arguments, allowed)
        given = {field: getattr(read, field) for field in found.arguments.__struct_fields__}
        if found.progress:
            context.progress(found.progress)

        async def result() -> Any:
            ready = context
            if found.preview is not None and not context.shown:
                ready = replace(context, preview=await self._previewed(found, read, context))
            if found.context_name is not None:
                given[found.context_name] = ready
            return await self._call(found.function, given)

        return as_text(name, await self._within(found.timeout_s, name, result()))

    async def preview(
        self, name: str, arguments: str, context: ToolContext, allowed: Iterable[str]
    ) -> Preview | None:
        """Return what a call would do, ``None`` where it would change nothing.

        Raises what ``run`` does; after ``PREVIEW_S`` it is given up.
        """
        found, read = self._read(name, arguments, allowed)
        made: Preview | None = await self._within(PREVIEW_S, name, self._previewed(found, read, context))
        return made

    def _read(self, name: str, arguments: str, allowed: Iterable[str]) -> tuple[Tool, msgspec.Struct]:
        found = self._tools.get(name) if name in set(allowed) else None
        if found is None:
            raise UnknownTool(f"There is no tool {name[:64]!r}.")
        return found, read_arguments(arguments, found.arguments)

    async def _previewed(self, found: Tool, read: msgspec.Struct, context: ToolContext) -> Preview | None:
        assert found.preview is not None
        given = {"arguments": read, "capabilities": context.session}
        made: Preview | None = await self._call(found.preview, given)
        return made

    async def _within(self, seconds: float, name: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what users' own code brings in time; raise ``ToolError`` for whatever it fails of."""
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise ToolFailed(f"{name} did not finish within {seconds:g} seconds.", code="timeout") from None
        except ToolError:
            raise
        except Exception as error:
            # The boundary of users' own code.
            logger.exception("the tool %s failed", name)
            raise ToolFailed(f"{name} failed ({type(error).__name__}).") from error

    async def _call(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(**given)
        return await (self._threads or tool_threads()).run(function, given)


registry = ToolRegistry()
"""Definitions of tools, filled by Django's discovery of ``voice_tools`` modules: no state of a process."""


def tool(
    *,
    name: str = "",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    needs_approval: bool = False,
    progress: str = "",
    preview: Callable[..., Any] | None = None,
) -> Callable[[_F], _F]:
    """Register the decorated function as a tool; the function itself is left as it is.

    ``name`` is the function's own unless it is given, ``timeout_s`` its limit in seconds; for the others see
    the module.
    """

    def register(function: _F) -> _F:
        registry.add(
            function,
            name=name,
            timeout_s=timeout_s,
            needs_approval=needs_approval,
            progress=progress,
            preview=preview,
        )
        return function

    return register


def _make(function: Callable[..., Any], name: str, timeout_s: float) -> Tool:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a tool: letters, digits, - and _, 64 at most")
    description = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    if not description:
        raise ValueError(f"the tool {name} needs a docstring, by which the model knows it")
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise ValueError(f"the first paragraph of {name} is longer than {MAX_DESCRIPTION_CHARS} characters")
    hints = typing.get_type_hints(function, include_extras=True)
    context_name: str | None = None
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(f"{name}: {parameter.name!r} cannot be given by name")
        hint = hints.get(parameter.name)
        if hint is None:
            raise ValueError(f"{name}: {parameter.name!r} needs a type")
        if hint is ToolContext:
            context_name = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    arguments = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    return Tool(name, description, _schema(arguments), timeout_s, function, arguments, context_name)


def _schema(arguments: type[msgspec.Struct]) -> JsonObject:
    """Return the JSON Schema of the arguments, without references, which services do not follow."""
    _, components = msgspec.json.schema_components([arguments])

    def resolved(node: Any) -> Any:
        if isinstance(node, list):
            return [resolved(inner) for inner in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return resolved(components[node["$ref"].rsplit("/", 1)[1]])
        return {key: resolved(value) for key, value in node.items() if key != "title"}

    schema: JsonObject = resolved(components[arguments.__name__])
    return schema
