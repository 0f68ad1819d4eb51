"""What the gateway takes and gives, contract ``engine-gateway.v1``; pure."""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal

import msgspec

from voiceapp.errors import TextRequestError, VoiceAppError
from voiceapp.serving import sse
from voiceapp.text.chat.turns import joined
from voiceapp.types import JsonObject

MAX_MESSAGES: Final = 2_000
MAX_TOKENS: Final = 32_768
MAX_SCHEMA_CHARS: Final = 64_000

# Said where the messages bring no instructions of their own.
ROLES: Final = {
    "client": "You are the client in this conversation: the person whom somebody in training talks to. "
    "Stay in that role, whatever is asked.",
    "counselor": "You are the counselor in this conversation. Listen, ask, and answer briefly and kindly.",
    "evaluator": "You judge the finished conversation that you are given, by what was really said.",
}


class ChatMessage(msgspec.Struct, forbid_unknown_fields=False):
    """One message; ``cache`` says that it will come again. Services that cache do so without being told."""

    role: Literal["system", "user", "assistant"]
    content: str
    cache: bool = False


class GenerateRequest(msgspec.Struct, kw_only=True):
    """The body of both addresses."""

    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES)]
    ai_role: Literal["client", "counselor", "evaluator"] = "client"
    model: str | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=MAX_TOKENS)] = 1024
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] = 0.7
    session_id: str | None = None
    structured_schema: JsonObject | None = None
    metadata: JsonObject = msgspec.field(default_factory=dict)


class GenerateResponse(msgspec.Struct, kw_only=True):
    """The answer of ``/v1/generate``. ``structured`` is set where a schema was given."""

    text: str
    model: str
    provider: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    structured: JsonObject | None = None
    inference_geo: str | None = None


class Done(msgspec.Struct, kw_only=True):
    """The last packet of a stream that went well. ``turns``: what the user said, counted."""

    provider: str
    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    turns: int = 0


def read_request(body: JsonObject) -> GenerateRequest:
    """Return a body as a request; raise ``TextEngineError`` (``invalid_request``) with what is wrong."""
    try:
        request = msgspec.convert(body, GenerateRequest)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        message = f"The request does not fit the contract: {error}"
        raise TextRequestError(message, code="invalid_request") from None
    schema = request.structured_schema
    if schema is not None:
        if schema.get("type") != "object":
            message = "structured_schema must be the schema of an object."
            raise TextRequestError(message, code="invalid_request")
        if len(json.dumps(schema, ensure_ascii=False)) > MAX_SCHEMA_CHARS:
            message = f"structured_schema may have {MAX_SCHEMA_CHARS} characters at most."
            raise TextRequestError(message, code="invalid_request")
    return request


def chat_body(request: GenerateRequest) -> JsonObject:
    """Return the chat request that a gateway's request amounts to.

    Its instructions stand first, and messages that one side sent in a row are one: not every service takes
    another order.
    """
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    if not any(message["role"] == "system" for message in messages):
        messages.insert(0, {"role": "system", "content": ROLES[request.ai_role]})
    body: JsonObject = {
        "messages": joined(messages),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream_options": {"include_usage": True},
    }
    return body


# -- packets of a stream ----------------------------------------------------------------------------------


def token(text: str) -> JsonObject:
    """Return a packet with more text."""
    return {"event": "token", "payload": {"text": text}}


def done(payload: Done) -> JsonObject:
    """Return the packet that ends a stream well."""
    return {"event": "done", "payload": msgspec.to_builtins(payload)}


def failed(error: VoiceAppError) -> JsonObject:
    """Return the packet that ends a stream badly."""
    return {"event": "error", "payload": {"detail": f"{error.code}: {error.message}"}}


def frame(packet: JsonObject) -> str:
    """Return a packet as the text of one server-sent event."""
    return sse.event(packet["payload"], packet["event"])
