"""The body of ``POST …/chat/completions``, read for the product's own providers; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from voiceapp.errors import TextEngineError, TextRequestError
from voiceapp.text.provider import Called, FunctionTool, HistoryItem, ReplyRequest, Returned, Said
from voiceapp.types import JsonObject

MAX_MESSAGES: Final = 2_000
MAX_TOOLS: Final = 128
MAX_TOKENS: Final = 1_000_000
STRUCTURED: Final = "structured_output"
"""Name of the one function that a provider must call where JSON of a schema is wanted."""

# What has no meaning here and would change what the caller gets must not be passed over in silence.
_NOT_SERVED: Final = ("logit_bias", "stop", "audio", "prediction", "functions", "function_call")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """``reply`` is what a provider is asked; ``structured`` says that its call is the answer's text."""

    reply: ReplyRequest
    model: str
    structured: bool
    include_usage: bool


def read(body: JsonObject) -> ChatRequest:
    """Return what a body asks for; raise ``TextEngineError`` with the service's code and ``param``."""
    _check_served(body)
    instructions, history = _messages(body.get("messages"))
    tools = _tools(body.get("tools"))
    choice = _choice(body.get("tool_choice"), tools)
    structured = _schema(body.get("response_format"))
    if structured is not None and not tools:
        tools, choice = (FunctionTool(STRUCTURED, "The answer, in parts.", structured),), STRUCTURED
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise _wrong("stream_options", "an object")
    request = ReplyRequest(
        instructions,
        tuple(history),
        tools,
        choice,
        several_calls=body.get("parallel_tool_calls") is not False and choice != STRUCTURED,
        max_tokens=_limit(body),
        spoken=False,
    )
    return ChatRequest(
        request, _model(body.get("model")), choice == STRUCTURED, bool(options.get("include_usage"))
    )


def _check_served(body: JsonObject) -> None:
    for name in _NOT_SERVED:
        if body.get(name):
            raise TextRequestError(f"{name!r} is not supported.", code="unsupported_parameter", param=name)
    if body.get("n", 1) not in (1, None):
        raise TextRequestError("Only one choice is made: 'n' must be 1.", code="unsupported_value", param="n")
    if body.get("logprobs"):
        message = "There are no probabilities to tell of."
        raise TextRequestError(message, code="unsupported_parameter", param="logprobs")
    modalities = body.get("modalities") or ["text"]
    if modalities != ["text"]:
        message = "Chat completions are text here."
        raise TextRequestError(message, code="unsupported_value", param="modalities")


def _model(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong("model", "a string")
    return value


def _limit(body: JsonObject) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(name, "an integer")
        if not 1 <= value <= MAX_TOKENS:
            message = f"Invalid '{name}': a number from 1 to {MAX_TOKENS} is expected."
            raise TextRequestError(message, code="integer_out_of_range", param=name)
        return value
    return None


# -- messages -------------------------------------------------------------------------------------------


def _messages(value: Any) -> tuple[str, list[HistoryItem]]:
    """Return the instructions, which are what stands before the first other message, and the rest."""
    if value is None:
        message = "Missing required parameter: 'messages'."
        raise TextRequestError(message, code="missing_required_parameter", param="messages")
    if not isinstance(value, list):
        raise _wrong("messages", "an array")
    if not value:
        message = "'messages' must hold at least one message."
        raise TextRequestError(message, code="empty_array", param="messages")
    if len(value) > MAX_MESSAGES:
        message = f"'messages' may hold {MAX_MESSAGES} messages at most."
        raise TextRequestError(message, code="array_above_max_length", param="messages")
    instructions: list[str] = []
    history: list[HistoryItem] = []
    for position, message in enumerate(value):
        for item in _message(message, f"messages[{position}]"):
            if not history and isinstance(item, Said) and item.role == "system":
                instructions.append(item.text)
            else:
                history.append(item)
    return "\n\n".join(instructions), history


def _message(message: Any, param: str) -> list[HistoryItem]:
    if not isinstance(message, dict):
        raise _wrong(param, "an object")
    role = message.get("role")
    match role:
        case "system" | "developer":
            return [Said("system", _content(message, param))]
        case "user":
            return [Said("user", _content(message, param))]
        case "assistant":
            called: list[HistoryItem] = list(_calls(message.get("tool_calls"), f"{param}.tool_calls"))
            if message.get("content") is None:
                return called
            return [Said("assistant", _content(message, param)), *called]
        case "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str):
                raise _wrong(f"{param}.tool_call_id", "a string")
            return [Returned(call_id, _content(message, param))]
    message = (
        f"Invalid value: {str(role)[:40]!r}. Supported values are: 'system', 'developer', 'user', "
        "'assistant', and 'tool'."
    )
    raise TextRequestError(message, code="invalid_value", param=f"{param}.role")


def _content(message: JsonObject, param: str) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _wrong(f"{param}.content", "a string or an array of parts")
    texts: list[str] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ("text", "refusal"):
            sentence = "Only text can be read here, neither images nor sound nor files."
            raise TextRequestError(sentence, code="unsupported_content", param=f"{param}.content")
        text = part.get(kind)
        if not isinstance(text, str):
            raise _wrong(f"{param}.content", "parts with text")
        texts.append(text)
    return "\n".join(texts)


def _calls(value: Any, param: str) -> list[Called]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(param, "an array")
    found: list[Called] = []
    for call in value:
        function = call.get("function") if isinstance(call, dict) else None
        fields: tuple[Any, ...] = ()
        if isinstance(function, dict):
            fields = (call.get("id"), function.get("name"), function.get("arguments"))
        if len(fields) != 3 or not all(isinstance(field, str) for field in fields):
            raise _wrong(param, "calls with an id and a function of name and arguments")
        found.append(Called(*fields))
    return found


# -- tools and structure --------------------------------------------------------------------------------


def _tools(value: Any) -> tuple[FunctionTool, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wrong("tools", "an array")
    if len(value) > MAX_TOOLS:
        message = f"'tools' may hold {MAX_TOOLS} tools at most."
        raise TextRequestError(message, code="array_above_max_length", param="tools")
    found: list[FunctionTool] = []
    for position, tool in enumerate(value):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type") != "function":
            raise _wrong(f"tools[{position}]", "a function")
        name, description = function.get("name"), function.get("description") or ""
        parameters = function.get("parameters") or {}
        if not isinstance(name, str) or not name:
            raise _wrong(f"tools[{position}].function.name", "a string")
        if not isinstance(description, str) or not isinstance(parameters, dict):
            raise _wrong(f"tools[{position}].function", "a description and a schema")
        found.append(FunctionTool(name, description, parameters))
    return tuple(found)


def _choice(value: Any, tools: tuple[FunctionTool, ...]) -> str:
    if value is None:
        return "auto"
    if value in ("auto", "none", "required"):
        return str(value)
    function = value.get("function") if isinstance(value, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if name not in [tool.name for tool in tools]:
        message = "The tool that 'tool_choice' names is not among 'tools'."
        raise TextRequestError(message, code="invalid_value", param="tool_choice")
    return str(name)


def _schema(value: Any) -> JsonObject | None:
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind != "json_schema":
        sentence = (
            "'response_format' is either text or json_schema here: without a schema nobody knows what to say."
        )
        raise TextRequestError(sentence, code="unsupported_value", param="response_format")
    wanted = value.get("json_schema")
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise _wrong("response_format.json_schema.schema", "the schema of an object")
    return schema


def _wrong(param: str, expected: str) -> TextEngineError:
    message = f"Invalid type for '{param}': expected {expected}."
    return TextRequestError(message, code="invalid_type", param=param)
