"""What chat services send as an answer, made chunks that everybody here can rely on; pure.

An answer has words or calls, and an end. Where it has not, or where the service says that it failed, in
whichever shape, there is an error: the absence of an end is no end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from voiceapp.errors import RemoteProtocolError, TextEngineError, TextEngineLimited, TextRequestError
from voiceapp.protocol import chat_chunks
from voiceapp.text.chat.result import MAX_CHARS
from voiceapp.text.thoughts import SpokenWords, WrittenCall
from voiceapp.types import JsonObject

NOTHING_SAID: Final = "The model said nothing."
BROKEN_OFF: Final = "The chat endpoint broke off its answer."
NO_PART: Final = "The chat endpoint sent something that is no part of an answer."
# Of the answer's id so much stands in the ids of its calls, which may have 40 characters.
_ID_CHARS: Final = 24
_CUT_SHORT: Final = ("length", "content_filter")
_SAY_FAILURE: Final = ("detail", "message", "msg", "errors", "error_code", "error_message")


class AnswerReader:
    """One answer as it comes in, to the request ``asked``.

    Thoughts are taken out of its words, and calls that the model wrote as text become calls, where the tool
    was offered. ``unopened``: see ``SpokenWords``; ``was_unopened`` says whether that is how it was.
    """

    def __init__(self, asked: Mapping[str, Any], *, unopened: bool = False) -> None:
        self.was_unopened = False
        self._tools = _offered(asked)
        self._unopened = unopened
        self._words: dict[int, SpokenWords] = {}
        self._chars = 0
        self._begun = self._said = self._called = False
        self._reason = ""
        self._head: JsonObject = {}

    @property
    def ended(self) -> bool:
        """Whether it has said why it ends."""
        return bool(self._reason)

    def feed(self, fields: Any, event: str = "") -> list[JsonObject]:
        """Return the chunks that one event of the stream makes; raise ``TextEngineError``."""
        if (failure := _failure(fields, event)) is not None:
            raise _failed(failure)
        if not isinstance(fields, dict):
            raise _no_part()
        choices = fields.get("choices")
        if not choices:
            return [_checked(fields)]
        if not isinstance(choices, list):
            raise _no_part()
        self._begun = True
        self._head = {name: value for name, value in fields.items() if name not in ("choices", "usage")}
        made = [one for choice in choices if (one := self._choice(choice)) is not None]
        chunk = _checked({**fields, "choices": made})
        found = [chunk] if made or fields.get("usage") else []
        if any(words.taken_back for words in self._words.values()):
            for words in self._words.values():
                words.taken_back = False
            return [dict(chat_chunks.TAKEN_BACK), *found]
        return found

    def whole(self, fields: Any) -> list[JsonObject]:
        """Return the chunks of an answer that came in one piece, a ``chat.completion``."""
        if isinstance(fields, dict) and _failure(fields, "") is None:
            choices = fields.get("choices")
            if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
                raise _no_part()
            # It is all there: it has ended, whether it says why or not.
            ended = [{**choice, "finish_reason": choice.get("finish_reason") or "stop"} for choice in choices]
            fields = {**fields, "object": "chat.completion.chunk", "choices": ended}
        return self.feed(fields)

    def finish(self, *, done: bool) -> Iterator[JsonObject]:
        """Yield what is left, the stream being over; ``done``: the service itself said so.

        Raises ``TextEngineError`` where the answer has no end, or nothing in it.
        """
        if not self._begun:
            raise TextEngineError("The chat endpoint answered nothing.", code="text_engine_error")
        if not self._reason:
            words = self._spoken(0)
            said = words.finish()
            self._said = self._said or bool(said.strip())
            if said:
                yield self._chunk({"content": said}, None)
            if not done or self._called or words.calls:
                raise TextEngineError(BROKEN_OFF, code="text_engine_error")
            if self._said:
                yield self._chunk({}, "stop")
        if not (self._said or self._called or self._reason in _CUT_SHORT):
            raise TextEngineError(NOTHING_SAID, code="text_engine_error")

    def _chunk(self, delta: JsonObject, reason: str | None) -> JsonObject:
        return {**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    def _spoken(self, number: int) -> SpokenWords:
        if number not in self._words:
            self._words[number] = SpokenWords(unopened=self._unopened)
        return self._words[number]

    def _choice(self, choice: Any) -> JsonObject | None:
        """Return a choice with the words for the person alone; ``None`` for the end of an empty answer."""
        if not isinstance(choice, dict):
            raise _no_part()
        number, reason = choice.get("index") or 0, choice.get("finish_reason")
        delta = choice.get("message") or choice.get("delta") or {}
        if not isinstance(number, int) or not isinstance(delta, dict):
            raise _no_part()
        if reason == "error" or choice.get("error"):
            raise _failed(choice.get("error"))
        made = {name: value for name, value in choice.items() if name != "message"}
        if delta or reason:
            made["delta"] = self._delta(number, delta, "message" in choice, str(reason or ""))
        if number == 0 and reason:
            self._reason = str(reason)
            if not (self._said or self._called or reason in _CUT_SHORT):
                return None
        if reason and reason not in _CUT_SHORT and made["delta"].get("tool_calls"):
            made["finish_reason"] = "tool_calls"
        return made

    def _delta(self, number: int, delta: JsonObject, whole: bool, reason: str) -> JsonObject:
        words, content, calls = self._spoken(number), delta.get("content"), delta.get("tool_calls")
        text = _text_of(content)
        self._chars += len(text)
        if self._chars > MAX_CHARS:
            sentence = f"The answer is longer than {MAX_CHARS} characters."
            raise TextEngineError(sentence, code="text_engine_error")
        said = words.feed(text)
        if reason:
            said += words.finish()
        made = dict(delta)
        if content is not None or said:
            made["content"] = said
        if isinstance(calls, list):
            made["tool_calls"] = [
                _fragment(call, place if whole else None) for place, call in enumerate(calls)
            ]
        elif reason and reason not in _CUT_SHORT and not self._called:
            written = [call for call in words.calls if call.name in self._tools]
            if written:
                head = str(self._head.get("id") or "written")[-_ID_CHARS:]
                made["tool_calls"] = [_as_call(call, head, place) for place, call in enumerate(written)]
        if number == 0:
            self.was_unopened = words.was_unopened
            kept = self._said and not words.taken_back
            self._said = kept or bool(said.strip() or str(delta.get("refusal") or "").strip())
            self._called = self._called or bool(made.get("tool_calls"))
        return made


def _offered(asked: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the functions that a request lets the model call."""
    tools = asked.get("tools")
    if not isinstance(tools, list) or asked.get("tool_choice") == "none":
        return frozenset()
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)]
    return frozenset(
        function["name"]
        for function in functions
        if isinstance(function, dict) and isinstance(function.get("name"), str)
    )


def _text_of(content: Any) -> str:
    """Return the words of a content; some services send parts, of which only text is for the person."""
    if isinstance(content, list):
        if not all(isinstance(part, dict) for part in content):
            raise _no_part()
        texts = [part.get("text") for part in content if part.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        raise _no_part()
    return content or ""


def _fragment(call: Any, place: int | None) -> Any:
    """Return a call as a stream has it: numbered, with arguments as text."""
    if not isinstance(call, dict):
        return call
    function = call.get("function")
    if isinstance(function, dict) and isinstance(function.get("arguments"), dict):
        call = {**call, "function": {**function, "arguments": json.dumps(function["arguments"])}}
    return call if place is None else {"index": place, **call}


def _as_call(call: WrittenCall, head: str, place: int) -> JsonObject:
    function = {"name": call.name, "arguments": call.arguments}
    return {"index": place, "id": f"call_{head}_{place}", "type": "function", "function": function}


# -- failures -----------------------------------------------------------------------------------------------


def _failure(fields: Any, event: str) -> JsonObject | None:
    """Return the failure that an object of a service tells of, in one of the shapes that services have."""
    if isinstance(fields, list) and fields and isinstance(fields[0], dict) and "error" in fields[0]:
        fields = fields[0]
    if not isinstance(fields, dict):
        return {} if event == "error" else None
    if error := fields.get("error"):
        return error if isinstance(error, dict) else {}
    says_so = event == "error" or "error" in (fields.get("object"), fields.get("type"))
    if says_so or ("choices" not in fields and any(fields.get(name) for name in _SAY_FAILURE)):
        return fields
    return None


def _failed(error: Any) -> TextEngineError:
    """Return our error for a service's, with nothing of its payload in it."""
    fields = error if isinstance(error, dict) else {}
    codes = {str(fields.get(name)).lower() for name in ("code", "type", "status", "error_code")}
    if "content_filter" in codes:
        sentence = "The chat endpoint's content filter blocked the request."
        return TextRequestError(sentence, code="content_filter")
    if codes & {"429", "rate_limit_exceeded", "rate_limit_error", "too_many_requests"}:
        return TextEngineLimited("The chat endpoint is at its limit; try again soon.")
    return TextEngineError("The chat endpoint failed.", code="text_engine_error")


def _checked(chunk: JsonObject) -> JsonObject:
    try:
        chat_chunks.read(chunk)
    except RemoteProtocolError:
        raise _no_part() from None
    return chunk


def _no_part() -> TextEngineError:
    return TextEngineError(NO_PART, code="text_engine_error")
