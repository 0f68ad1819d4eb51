"""Chat completions dressed as the Responses API, for hosts whose endpoint has only the former."""

from __future__ import annotations

import secrets

from voiceapp.text.chat.provider import ChunkReader
from voiceapp.text.provider import (
    CallArguments,
    CallFinished,
    CallStarted,
    Delta,
    Finished,
    TakenBack,
    TextDelta,
)
from voiceapp.types import JsonObject


class ChatEvents:
    """Chat chunks to Responses events."""

    def __init__(self, model: str) -> None:
        self._id = f"resp_{secrets.token_hex(12)}"
        self._model = model
        self._reader = ChunkReader()
        self._text = ""
        self._text_index: int | None = None
        self._calls: dict[int, JsonObject] = {}
        self._count = 0

    def feed(self, chunk: JsonObject) -> list[JsonObject]:
        """Take one chunk."""
        return [event for delta in self._reader.feed(chunk) for event in self._events(delta)]

    def finish(self) -> list[JsonObject]:
        """Return the events that end the response."""
        text = [] if self._text_index is None else [_done(self._text_index, self._message())]
        return [*text, *(event for delta in self._reader.finish() for event in self._events(delta))]

    def _events(self, delta: Delta) -> list[JsonObject]:
        match delta:
            case TextDelta(text=text):
                return self._say(text)
            case TakenBack():
                # Responses have no event for it; the app takes back what stands before this mark.
                found = self._say("</think>")
                self._text = ""
                return found
            case CallStarted(index=number, call_id=call_id, name=name):
                return self._begin(number, call_id, name)
            case CallArguments(index=number, delta=text):
                call = self._calls[number]
                call["item"]["arguments"] += text
                place = {"output_index": call["output_index"], "item_id": call["item"]["id"]}
                return [{"type": "response.function_call_arguments.delta", **place, "delta": text}]
            case CallFinished(index=number):
                index, item = self._calls[number]["output_index"], self._calls[number]["item"]
                done = {"output_index": index, "item_id": item["id"], "arguments": item["arguments"]}
                return [{"type": "response.function_call_arguments.done", **done}, _done(index, item)]
            case Finished():
                return [self._end(delta)]

    def _say(self, text: str) -> list[JsonObject]:
        found: list[JsonObject] = []
        if self._text_index is None:
            self._text_index = self._next()
            added = {"output_index": self._text_index, "item": {**self._message(), "content": []}}
            found.append({"type": "response.output_item.added", **added})
        self._text += text
        place = {"output_index": self._text_index, "item_id": f"msg_{self._id}", "content_index": 0}
        return [*found, {"type": "response.output_text.delta", **place, "delta": text}]

    def _message(self) -> JsonObject:
        content = [{"type": "output_text", "text": self._text, "annotations": []}]
        return {"id": f"msg_{self._id}", "type": "message", "role": "assistant", "content": content}

    def _begin(self, number: int, call_id: str, name: str) -> list[JsonObject]:
        item = {"id": f"fc_{self._id}_{number}", "type": "function_call", "call_id": call_id, "name": name}
        index = self._next()
        self._calls[number] = {"output_index": index, "item": {**item, "arguments": ""}}
        added = {"output_index": index, "item": {**item, "arguments": ""}}
        return [{"type": "response.output_item.added", **added}]

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def _end(self, finished: Finished) -> JsonObject:
        tokens_in, tokens_out = finished.input_tokens or 0, finished.output_tokens or 0
        usage = {
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
        response = {"id": self._id, "object": "response", "model": self._model, "usage": usage}
        if finished.reason == "stop":
            return {"type": "response.completed", "response": {**response, "status": "completed"}}
        details = {"status": "incomplete", "incomplete_details": {"reason": finished.reason}}
        return {"type": "response.incomplete", "response": {**response, **details}}


def _done(index: int, item: JsonObject) -> JsonObject:
    return {"type": "response.output_item.done", "output_index": index, "item": item}
