"""What a chat service does not take, learnt from its refusals; pure.

Most of what a request says is a wish: how long the answer may be, whether tokens are counted, how daring it
is. Services differ in which of these they know, and refuse a request over one that they do not. Such a wish
is left out from then on, or put otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from voiceapp.text.chat.turns import in_turns
from voiceapp.types import JsonObject

MAX_LEFT_OUT: Final = 1_000
"""Refused tools, and refused schemas, that are remembered; they come from outside."""
MAX_EXPLANATION_CHARS: Final = 20_000
"""So much of a refusal is read; some services send the whole request back."""

OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
_OPTIONAL: Final = frozenset({
    OLD_LIMIT, NEW_LIMIT, "parallel_tool_calls", "stream_options", "temperature", "response_format", "tools",
    "tool_choice", "top_p", "top_k", "min_p", "seed", "user", "store", "metadata", "frequency_penalty",
    "presence_penalty", "reasoning_effort", "verbosity", "service_tier", "prompt_cache_key",
    "safety_identifier", "modalities",
})  # fmt: skip
_PLAIN_WORDS: Final = frozenset({"tools", "user", "store", "seed", "metadata", "verbosity"})
"""Wishes whose names stand in other sentences too: in those they count only where they are quoted."""
_NEEDED: Final = frozenset({"model", "messages", "stream"})
_UNKNOWN: Final = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|extra[_ ](?:inputs|forbidden)|not permitted|not allowed"
    r"|not available|deprecated|instead",
    re.IGNORECASE,
)
"""How services speak of what they do not know."""
_WRONG_VALUE: Final = re.compile(
    r"too (?:large|long|high|small|low|big|many)|at (?:most|least)|m(?:ax|in)imum|less than|greater than"
    r"|exceed|out of range|invalid type|expected an? |should be (?:a |an |less|greater)",
    re.IGNORECASE,
)
"""How services speak of a value that is wrong, of a wish that they know."""
_ORDER: Final = re.compile(
    r"\broles?\b|alternat|message[_ ]order|order of (?:the )?messages|system (?:message|prompt)|last message",
    re.IGNORECASE,
)
_NO_TOOLS: Final = re.compile(
    r"enable-auto-tool-choice|not support (?:tools?\b|function|tool[_ ](?:use|call))"
    r"|(?:tools?|tool[_ ](?:use|call(?:s|ing)?)|functions?) (?:is|are) (?:not supported|unsupported)",
    re.IGNORECASE,
)
_FUNCTION: Final = re.compile(
    r"(?:function|tool)(?: named| called)? ['\"`]([\w.-]{1,128})['\"`]", re.IGNORECASE
)
_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_STEPS: Final = re.compile(r"[^\w-]+")


class ServiceOptions:
    """What one service, at one address and with one model, is asked for.

    ``new_limit``: it wants ``max_completion_tokens``, as OpenAI's and Azure's do.
    """

    def __init__(self, *, new_limit: bool = False) -> None:
        self._left_out: set[str] = set()
        self._limits = [NEW_LIMIT, OLD_LIMIT] if new_limit else [OLD_LIMIT, NEW_LIMIT]
        self._limit_known = new_limit
        self._tools: dict[str, None] = {}
        self._forms: dict[str, None] = {}
        self._turns = False

    def fitted(self, body: JsonObject) -> JsonObject:
        """Return the request as this service takes it, as far as that is known."""
        fitted = {name: value for name, value in body.items() if name not in self._left_out}
        self._fit_limit(fitted)
        if self._tools and isinstance(fitted.get("tools"), list):
            fitted["tools"] = [tool for tool in fitted["tools"] if _key(tool) not in self._tools]
        if "tools" not in fitted:
            # Services refuse a choice among none.
            fitted.pop("tool_choice", None)
        if "tools" in body and not fitted.get("tools"):
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                fitted.pop(name, None)
        elif self._tools and _chosen(fitted) not in (None, *map(_name, fitted.get("tools") or ())):
            del fitted["tool_choice"]
        if self._forms and _key(fitted.get("response_format")) in self._forms:
            del fitted["response_format"]
        if "response_format" in body and "response_format" not in fitted:
            fitted["messages"] = _with_schema(fitted.get("messages"), body["response_format"])
        if self._turns and _are_messages(fitted.get("messages")):
            fitted["messages"] = in_turns(fitted["messages"])
        return fitted

    def _fit_limit(self, body: JsonObject) -> None:
        given = [body[name] for name in (NEW_LIMIT, OLD_LIMIT) if body.get(name) is not None]
        if given and self._limit_known:
            body.pop(OLD_LIMIT, None)
            body.pop(NEW_LIMIT, None)
            for name in self._limits[:1]:
                body[name] = given[0]

    def learn(self, refusal: Any, sent: JsonObject) -> str:
        """Return what is put otherwise from now on, in words for a log; "" where nothing can be.

        ``refusal`` is the body of the service's answer, ``sent`` the request that it refused.
        """
        explained = " ".join(_texts(refusal))[:MAX_EXPLANATION_CHARS]
        for steps in _named(refusal, explained, sent):
            if words := self._give_up(steps, explained, sent):
                return words
        if not self._turns and _ORDER.search(explained) and _says_order(sent):
            self._turns = True
            return "messages that are not in turns"
        return ""

    def _give_up(self, steps: list[str], explained: str, sent: JsonObject) -> str:
        name = steps[0]
        if name == "tools" and (tool := _refused_tool(steps, explained, sent)) is not None:
            if len(self._tools) < MAX_LEFT_OUT:
                self._tools[_key(tool)] = None
                return f"the tool {str(_name(tool))[:64]!r}"
            return ""
        if name not in sent or name not in _OPTIONAL:
            return ""
        unknown = _UNKNOWN.search(explained) or _NO_TOOLS.search(explained)
        if not unknown and (_WRONG_VALUE.search(explained) or name in ("tools", "tool_choice")):
            # What one request asked for is wrong, and others may ask for tools.
            return ""
        if name == "response_format" and "schema" in explained.lower() and not _UNKNOWN.search(explained):
            # This one schema is not to its liking.
            if len(self._forms) < MAX_LEFT_OUT:
                self._forms[_key(sent[name])] = None
                return "one schema of an answer"
            return ""
        if name in (OLD_LIMIT, NEW_LIMIT):
            self._limits = [one for one in self._limits if one != name]
            self._limit_known = True
        else:
            self._left_out.add(name)
        return name


def _named(refusal: Any, explained: str, sent: JsonObject) -> Iterator[list[str]]:
    """Yield what a refusal names, as steps into the request: first by its fields, then in its sentences."""
    needed = False
    for place in _places(refusal):
        steps = [step for step in _STEPS.split(place) if step]
        if steps[:1] == ["body"]:
            steps = steps[1:]
        if steps:
            needed = needed or steps[0] in _NEEDED
            yield steps
    if needed:
        # What else its sentences name is no reason.
        return
    yield from _in_sentences(explained, sent)


def _in_sentences(explained: str, sent: JsonObject) -> Iterator[list[str]]:
    if "tools" in sent and _FUNCTION.search(explained):
        yield ["tools"]
    if numbered := re.search(r"\btools[.\[](\d+)", explained):
        yield ["tools", numbered.group(1)]
    found: list[tuple[int, str]] = []
    for name in _OPTIONAL & sent.keys():
        pattern = rf"['\"`]{name}\b" if name in _PLAIN_WORDS else rf"(?<!\w){name}(?!\w)"
        if match := re.search(pattern, explained):
            found.append((match.start(), name))
    for _, name in sorted(found):
        yield [name]
    if _NO_TOOLS.search(explained):
        yield ["tools"]


def _places(refusal: Any, depth: int = 0) -> Iterator[str]:
    """Yield the ``param`` and ``loc`` members of a refusal, wherever its service puts them."""
    if depth > 6:
        return
    if isinstance(refusal, dict):
        for name in ("param", "parameter", "field"):
            if isinstance(refusal.get(name), str):
                yield refusal[name]
        if isinstance(refusal.get("loc"), list):
            yield ".".join(map(str, refusal["loc"]))
    inner = refusal.values() if isinstance(refusal, dict) else refusal if isinstance(refusal, list) else ()
    for one in inner:
        yield from _places(one, depth + 1)


def _texts(refusal: Any, depth: int = 0) -> Iterator[str]:
    """Yield the sentences and codes of a refusal, but not what it repeats of the request."""
    if depth > 6:
        return
    if isinstance(refusal, str):
        yield refusal
    elif isinstance(refusal, list):
        for one in refusal:
            yield from _texts(one, depth + 1)
    elif isinstance(refusal, dict):
        for name, one in refusal.items():
            if name not in ("input", "param", "loc", "ctx"):
                yield from _texts(one, depth + 1)


def _refused_tool(steps: list[str], explained: str, sent: JsonObject) -> JsonObject | None:
    tools = [tool for tool in sent.get("tools") or [] if isinstance(tool, dict)]
    number = next((int(step) for step in steps[1:2] if step.isdecimal() and len(step) < 6), None)
    if number is not None:
        return tools[number] if number < len(tools) else None
    named = _FUNCTION.search(explained)
    return next((tool for tool in tools if named and _name(tool) == named.group(1)), None)


def _says_order(sent: JsonObject) -> bool:
    """Whether the messages stand in another order than the strictest."""
    messages = sent.get("messages")
    return _are_messages(messages) and in_turns(messages) != messages


def _are_messages(value: Any) -> TypeGuard[list[JsonObject]]:
    """Whether these are messages of roles that there are; what a program sends may be anything."""
    return isinstance(value, list) and all(
        isinstance(message, dict) and message.get("role") in _ROLES for message in value
    )


def _name(tool: Any) -> str | None:
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _key(tool: Any) -> str:
    return json.dumps(tool, sort_keys=True)


def _chosen(body: Mapping[str, Any]) -> str | None:
    """Return the name of the one tool that must be called."""
    return _name(body.get("tool_choice"))


def _with_schema(messages: Any, wanted: Any) -> Any:
    """Return the messages with the form of the answer in words, which the service does not take otherwise."""
    if not isinstance(messages, list) or not isinstance(wanted, dict) or wanted.get("type") == "text":
        return messages
    form = wanted.get("json_schema")
    schema = form.get("schema") if isinstance(form, dict) else None
    order = "Answer with nothing but a JSON object."
    if isinstance(schema, dict):
        order = f"Answer with nothing but JSON of this schema: {json.dumps(schema, ensure_ascii=False)}"
    return [{"role": "system", "content": order}, *messages]
