"""Chat completions dressed as the Responses API, for hosts whose endpoint has only the former."""

from __future__ import annotations

import json
import secrets
from typing import Any

Object = dict[str, Any]


class ChatEvents:
    """Chat chunks to Responses events."""

    def __init__(self, model: str) -> None:
        self._id = f"resp_{secrets.token_hex(12)}"
        self._model = model
        self._text = ""
        self._text_index: int | None = None
        self._calls: dict[int, Object] = {}
        self._count = 0
        self._reason = "stop"
        self._usage: Object = {}

    def feed(self, chunk: Object) -> list[Object]:
        """Take one chunk."""
        self._usage = chunk.get("usage") or self._usage
        found: list[Object] = []
        for choice in chunk.get("choices") or []:
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta") or {}
            if text := delta.get("content"):
                found += self._say(text)
            for position, call in enumerate(delta.get("tool_calls") or []):
                index = call.get("index")
                found += self._call(position if index is None else index, call)
        return found

    def finish(self) -> list[Object]:
        """Return the events that end the response."""
        found: list[Object] = []
        if self._text_index is not None:
            found.append(_done(self._text_index, self._message()))
        for call in self._calls.values():
            index, item = call["output_index"], call["item"]
            done = {"output_index": index, "item_id": item["id"], "arguments": item["arguments"]}
            found += [{"type": "response.function_call_arguments.done", **done}, _done(index, item)]
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(self._reason)
        usage = {
            "input_tokens": self._usage.get("prompt_tokens", 0),
            "output_tokens": self._usage.get("completion_tokens", 0),
            "total_tokens": self._usage.get("total_tokens", 0),
        }
        response = {"id": self._id, "object": "response", "model": self._model, "usage": usage}
        if reason:
            details = {"status": "incomplete", "incomplete_details": {"reason": reason}}
            return [*found, {"type": "response.incomplete", "response": {**response, **details}}]
        return [*found, {"type": "response.completed", "response": {**response, "status": "completed"}}]

    def _say(self, text: str) -> list[Object]:
        found: list[Object] = []
        if self._text_index is None:
            self._text_index, self._count = self._count, self._count + 1
            added = {"output_index": self._text_index, "item": {**self._message(), "content": []}}
            found.append({"type": "response.output_item.added", **added})
        self._text += text
        place = {"output_index": self._text_index, "item_id": f"msg_{self._id}", "content_index": 0}
        return [*found, {"type": "response.output_text.delta", **place, "delta": text}]

    def _message(self) -> Object:
        content = [{"type": "output_text", "text": self._text, "annotations": []}]
        return {"id": f"msg_{self._id}", "type": "message", "role": "assistant", "content": content}

    def _call(self, index: int, call: Object) -> list[Object]:
        function = call.get("function") or {}
        found: list[Object] = []
        if index not in self._calls:
            if not function.get("name"):
                return []
            item = {
                "id": f"fc_{self._id}_{index}",
                "type": "function_call",
                "call_id": call.get("id") or f"call_{index}",
                "name": function["name"],
                "arguments": "",
            }
            self._calls[index] = {"output_index": self._count, "item": item}
            found.append(
                {"type": "response.output_item.added", "output_index": self._count, "item": dict(item)}
            )
            self._count += 1
        kept = self._calls[index]
        if text := function.get("arguments"):
            kept["item"]["arguments"] += text
            place = {"output_index": kept["output_index"], "item_id": kept["item"]["id"]}
            found.append({"type": "response.function_call_arguments.delta", **place, "delta": text})
        return found


def _done(index: int, item: Object) -> Object:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def chat_function(tool: Object) -> Object:
    """Return a tool as chat requests name it."""
    return {name: tool[name] for name in ("name", "description", "parameters") if name in tool}


def chat_messages(fields: Object) -> list[Any]:
    """Return a request's instructions and input as chat messages."""
    found: list[Object] = []
    if fields.get("instructions"):
        found.append({"role": "system", "content": fields["instructions"]})
    for item in fields.get("input") or []:
        match item.get("type"):
            case "function_call":
                function = {"name": item.get("name"), "arguments": item.get("arguments")}
                call = {"id": item.get("call_id"), "type": "function", "function": function}
                if found and "tool_calls" in found[-1]:
                    found[-1]["tool_calls"].append(call)
                else:
                    found.append({"role": "assistant", "content": None, "tool_calls": [call]})
            case "function_call_output":
                output = item.get("output")
                text = output if isinstance(output, str) else json.dumps(output)
                found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": text})
            case "message":
                parts = item.get("content") or []
                text = "".join(part.get("text") or "" for part in parts if isinstance(part, dict))
                found.append({"role": item.get("role"), "content": text})
    return found
