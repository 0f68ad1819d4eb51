"""Tool calls of models that may write anything: what comes out is JSON of the tool's schema.

Text passes through as it comes. Calls are held until the reply is over, and checked; one that does not fit is
asked for once more, with what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Final

from voiceapp.errors import TextEngineError, TextRequestError
from voiceapp.text import structured
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    ReplyRequest,
    Returned,
    TakenBack,
    TextDelta,
    TextProvider,
)

MAX_ARGUMENTS_CHARS: Final = structured.MAX_TEXT_CHARS
"""Longest arguments of all calls of a reply; a model that never ends would take all memory."""


@dataclass(slots=True)
class _CollectedCall:
    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """All arguments; services leave them out where there are none."""
        return "".join(self.pieces).strip() or "{}"


@dataclass(slots=True)
class _Calls:
    """The calls of a reply, by index, and its end, ``None`` so far."""

    by_index: dict[int, _CollectedCall] = field(default_factory=dict)
    end: Finished | None = None
    _chars: int = 0

    def take(self, delta: Delta) -> None:
        match delta:
            case CallStarted(index=index, call_id=call_id, name=name):
                self.by_index[index] = _CollectedCall(call_id, name)
            case CallArguments(index=index, delta=piece):
                self.by_index[index].pieces.append(piece)
                self._chars += len(piece)
                if self._chars > MAX_ARGUMENTS_CHARS:
                    sentence = f"The model's calls are longer than {MAX_ARGUMENTS_CHARS} characters."
                    raise TextEngineError(sentence, code="text_engine_error")
            case Finished():
                self.end = delta

    @property
    def finished(self) -> Finished:
        """The end; raises ``TextEngineError`` where there was none."""
        if self.end is None:
            raise TextEngineError("The model broke off its reply.", code="text_engine_error")
        return self.end

    @property
    def made(self) -> list[_CollectedCall]:
        """The calls; one that was cut short is none. Raises as ``finished`` does."""
        return list(self.by_index.values()) if self.finished.reason == "stop" else []


class CheckedCalls:
    """A ``TextProvider`` that checks what another one calls."""

    def __init__(self, provider: TextProvider) -> None:
        self._provider = provider

    async def reply(self, request: ReplyRequest) -> AsyncIterator[Delta]:
        """See ``TextProvider``; raises ``invalid_tool_arguments`` where a second try does not fit either."""
        calls = _Calls()
        async for delta in self._provider.reply(request):
            if isinstance(delta, TextDelta | TakenBack):
                yield delta
            else:
                calls.take(delta)
        finished = calls.finished
        for index, call in enumerate(calls.made):
            fits, fault = await _checked(call, request)
            if fits is None:
                fits, spent = await self._once_more(request, call, fault)
                finished = _sum(finished, spent)
            yield CallStarted(index, fits.call_id, fits.name)
            for piece in fits.pieces:
                yield CallArguments(index, piece)
            yield CallFinished(index)
        yield finished

    async def _once_more(
        self, request: ReplyRequest, call: _CollectedCall, fault: str
    ) -> tuple[_CollectedCall, Finished]:
        """Return the call that comes instead; what is said of the mistake is no part of the reply."""
        sentence = f"Nothing was done, as the call is wrong: {fault}. Make it again, right."
        known = call.name in {tool.name for tool in request.tools}
        made = (Called(call.call_id, call.name, call.arguments), Returned(call.call_id, sentence))
        again = replace(
            request,
            history=(*request.history, *made),
            tool_choice=call.name if known else request.tool_choice,
            several_calls=False,
        )
        calls = _Calls()
        async for delta in self._provider.reply(again):
            calls.take(delta)
        if len(calls.made) == 1:
            fits, fault = await _checked(calls.made[0], request)
            if fits is not None:
                return fits, calls.finished
        raise TextRequestError(f"The model's call is wrong: {fault}.", code="invalid_tool_arguments")

    async def aclose(self) -> None:
        """Close the other one."""
        await self._provider.aclose()


async def _checked(call: _CollectedCall, request: ReplyRequest) -> tuple[_CollectedCall | None, str]:
    """Return (the call as it may go out, "") where it is right, else (``None``, what is wrong)."""
    schemas = {tool.name: tool.schema for tool in request.tools}
    if call.name not in schemas:
        return None, "there is no such tool"
    value, fault = await structured.read(call.arguments, schemas[call.name])
    if value is None:
        return None, fault
    if call.pieces and call.arguments.startswith("{"):
        return call, ""
    # They were left out, or stood in a code fence.
    return replace(call, pieces=[json.dumps(value)]), ""


def _sum(first: Finished, second: Finished) -> Finished:
    counts = [
        None if one is None and other is None else (one or 0) + (other or 0)
        for one, other in (
            (first.input_tokens, second.input_tokens),
            (first.output_tokens, second.output_tokens),
        )
    ]
    return Finished(first.reason, *counts)
