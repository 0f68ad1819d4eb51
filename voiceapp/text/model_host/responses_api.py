"""The Responses API as model hosts speak it: requests of conversations, replies from events; pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from voiceapp.errors import TextEngineError
from voiceapp.text.history import paired
from voiceapp.text.provider import (
    CallArguments,
    Called,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    FunctionTool,
    ReplyRequest,
    Returned,
    Said,
    TakenBack,
    TextDelta,
)
from voiceapp.text.thoughts import SpokenWords
from voiceapp.types import JsonObject

DEFAULT_MODEL: Final = "default"
"""What is asked for where nobody named a model: the host uses its own."""


def request_fields(request: ReplyRequest, model: str, headers: Mapping[str, str]) -> JsonObject:
    """Return the ``request`` of ``model/request``; ``headers`` go back to the service behind the host."""
    tools = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": False,
        }
        for tool in request.tools
    ]
    choice: Any = request.tool_choice
    if choice not in ("auto", "none", "required"):
        choice = {"type": "function", "name": choice}
    fields: JsonObject = {
        "model": model or DEFAULT_MODEL,
        "instructions": request.instructions,
        "input": [_input_item(item) for item in paired(request.history)],
        "tools": tools,
        "toolChoice": choice,
        "parallelToolCalls": request.several_calls,
        "store": False,
        "stream": True,
        "include": [],
    }
    if headers:
        fields["requestHeaders"] = dict(headers)
    return fields


def _input_item(item: Said | Called | Returned) -> JsonObject:
    match item:
        case Said(role="assistant", text=text):
            content = [{"type": "output_text", "text": text}]
            return {"type": "message", "role": "assistant", "content": content}
        case Said(role=role, text=text):
            return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        case Called(call_id=call_id, name=name, arguments=arguments):
            return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
        case Returned(call_id=call_id, output=output):
            return {"type": "function_call_output", "call_id": call_id, "output": output}


def read_request(fields: Mapping[str, Any]) -> ReplyRequest:
    """Return what the ``request`` of ``model/request`` asks for; what cannot be read is left out."""
    choice = fields.get("toolChoice", "auto")
    return ReplyRequest(
        _text(fields, "instructions"),
        tuple(_history_item(item) for item in _objects(fields, "input") if _text(item, "type") in _ITEMS),
        tuple(
            FunctionTool(_text(tool, "name"), _text(tool, "description"), dict(_object(tool, "parameters")))
            for tool in _objects(fields, "tools")
        ),
        _text(choice, "name") if isinstance(choice, dict) else str(choice),
        several_calls=bool(fields.get("parallelToolCalls", True)),
        spoken=False,
    )


_ITEMS: Final = frozenset({"message", "function_call", "function_call_output"})
_ROLES: Final[dict[str, Literal["system", "user", "assistant"]]] = {
    "system": "system", "developer": "system", "assistant": "assistant",
}  # fmt: skip


def _history_item(item: Mapping[str, Any]) -> Said | Called | Returned:
    match item["type"]:
        case "function_call":
            return Called(_text(item, "call_id"), _text(item, "name"), _text(item, "arguments"))
        case "function_call_output":
            output = item.get("output")
            return Returned(_text(item, "call_id"), output if isinstance(output, str) else json.dumps(output))
    words = "".join(_text(part, "text") for part in _objects(item, "content"))
    return Said(_ROLES.get(_text(item, "role"), "user"), words)


class EventReader:
    """Responses events to deltas; ``done`` once the response is over.

    What a service leaves out is filled in: a text or a call that comes whole, without deltas, is taken from
    ``response.output_item.done``. Thoughts are taken out of the text; a call of one of ``tools`` that stands
    in it becomes one. ``unopened``: see ``SpokenWords``.
    """

    def __init__(self, tools: Iterable[str] = (), *, unopened: bool = False) -> None:
        self.done = False
        self._tools = frozenset(tools)
        self._words = SpokenWords(unopened=unopened)
        self._said = False
        self._streamed: set[int] = set()
        self._calls: dict[int, str] = {}
        self._finished: set[int] = set()

    @property
    def was_unopened(self) -> bool:
        """Whether the reply began with a thought without an opening mark."""
        return self._words.was_unopened

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take one event; raise ``TextEngineError`` where it says that there will be no reply."""
        index = event.get("output_index")
        index = index if isinstance(index, int) else 0
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self._streamed.add(index)
                return self._say(self._words.feed(_text(event, "delta")))
            case "response.output_item.added":
                return self._begin(index, _object(event, "item"))
            case "response.function_call_arguments.delta" if index in self._calls:
                self._calls[index] += _text(event, "delta")
                return [CallArguments(index, _text(event, "delta"))]
            case "response.function_call_arguments.done" if index in self._calls:
                return self._complete(index, _text(event, "arguments"))
            case "response.output_item.done":
                return self._item_done(index, _object(event, "item"))
            case "response.completed":
                return self._completed(_object(event, "response"))
            case "response.incomplete":
                details = _object(_object(event, "response"), "incomplete_details")
                reason = str(details.get("reason") or "unknown")[:100]
                sentence = f"The model's reply was left incomplete: {reason}."
                raise TextEngineError(sentence, code="model_host_incomplete")
            case "response.failed":
                raise _failure(_object(_object(event, "response"), "error"))
            case "error":
                raise _failure(event)
        return []

    def _begin(self, index: int, item: Mapping[str, Any]) -> list[Delta]:
        if item.get("type") != "function_call" or index in self._calls:
            return []
        name, call_id = _text(item, "name"), _text(item, "call_id")
        if not name or not call_id:
            raise TextEngineError("The model called a tool without a name.", code="model_host_error")
        self._calls[index] = ""
        return [CallStarted(index, call_id, name)]

    def _complete(self, index: int, arguments: str) -> list[Delta]:
        """End a call; the whole of its arguments is known now, whatever deltas came."""
        if index in self._finished:
            return []
        self._finished.add(index)
        sent = self._calls[index]
        rest = arguments[len(sent) :] if arguments.startswith(sent) else ""
        return [*([CallArguments(index, rest)] if rest else []), CallFinished(index)]

    def _item_done(self, index: int, item: Mapping[str, Any]) -> list[Delta]:
        if item.get("type") == "function_call":
            return [*self._begin(index, item), *self._complete(index, _text(item, "arguments"))]
        if item.get("type") != "message" or index in self._streamed:
            return []
        texts = [_text(part, "text") for part in _objects(item, "content")]
        return [delta for text in texts for delta in self._say(self._words.feed(text))]

    def _say(self, words: str) -> list[Delta]:
        found: list[Delta] = []
        if self._words.taken_back:
            self._words.taken_back = self._said = False
            found.append(TakenBack())
        self._said = self._said or bool(words.strip())
        return [*found, TextDelta(words)] if words else found

    def _completed(self, response: Mapping[str, Any]) -> list[Delta]:
        if not isinstance(response.get("id"), str):
            raise TextEngineError("The model's last event has no response id.", code="model_host_error")
        self.done = True
        usage = _object(response, "usage")
        rest: list[Delta] = []
        if not (self._streamed or self._calls or self._said):
            # Nothing came on its own: all of it may stand here.
            for index, item in enumerate(_objects(response, "output")):
                rest += self._item_done(index, item)
        rest += self._say(self._words.finish())
        made: list[Delta] = [CallFinished(index) for index in self._calls if index not in self._finished]
        if not self._calls:
            made = self._written_calls()
        if not (self._said or self._calls or made):
            raise TextEngineError("The model said nothing.", code="model_host_error")
        return [*rest, *made, Finished("stop", _count(usage, "input_tokens"), _count(usage, "output_tokens"))]

    def _written_calls(self) -> list[Delta]:
        """Return the calls that the model wrote as text."""
        found: list[Delta] = []
        for index, call in enumerate(call for call in self._words.calls if call.name in self._tools):
            found += [
                CallStarted(index, f"call_written_{index}", call.name),
                CallArguments(index, call.arguments),
                CallFinished(index),
            ]
        return found


def _failure(error: Mapping[str, Any]) -> TextEngineError:
    code, message = str(error.get("code") or "unknown")[:100], str(error.get("message") or "")[:500]
    return TextEngineError(f"The model failed ({code}). {message}".strip(), code="model_host_error")


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _objects(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = fields.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _object(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) else None
