"""``/nnrp`` on a real socket under Uvicorn, what answers behind it, and an independent client."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any

import openai
from nnrp import TransportPolicy
from nnrp.client import (
    NativeClientConnection,
    NativeClientOptions,
    NativeClientProviderRoute,
    SubmitIdentity,
    SubmitPolicy,
    SubmitRequest,
    TypedPayloadInputFrame,
    TypedPayloadSubmitInput,
    connect_native_client_connection,
)
from nnrp.core import MessageType, PayloadKind, validate_result_push_body
from nnrp.schema import StreamSemantics

from tests.parts.chat_server import calls, chunk, ending, fragment, text
from tests.parts.contracts import ToolCalls, at_hand
from tests.parts.quick_server import in_this_loop
from tests.parts.waits import PATIENCE_S
from voiceapp.nnrp.backing import Backing
from voiceapp.nnrp.consumer import Connections, NnrpConsumer
from voiceapp.records.store.tokens import TokenHolder
from voiceapp.text.chat.service import RemoteCompletions, client_options
from voiceapp.text.provider import Completions
from voiceapp.types import JsonObject

TOKEN = "va_test"


class Scripted:
    """A text engine that streams what a function makes of a request."""

    provider, model = "scripted", "scripted"

    def __init__(self, script: Callable[[JsonObject], AsyncGenerator[JsonObject]]) -> None:
        self._script = script

    def stream(self, body: JsonObject) -> AsyncGenerator[JsonObject]:
        return self._script(body)

    async def aclose(self) -> None:
        pass


def remote(base_url: str) -> Completions:
    """The product's own client of a chat service."""
    return RemoteCompletions(
        openai.AsyncOpenAI(base_url=base_url, api_key="none", **client_options()), "m", "compatible"
    )


class Door:
    """Lets one token in, has one engine answer, and notes what was charged."""

    def __init__(self, engine: Completions, *, per_minute: int = 1_000_000, at_once: int = 10_000) -> None:
        self._engine = engine
        self.holder: TokenHolder | None = TokenHolder(1, 1, "test", per_minute, at_once, 0)
        self.charged: list[tuple[int, int]] = []

    async def admit(self, scope: JsonObject) -> TokenHolder | None:
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        return self.holder if TOKEN in given + scope["query_string"].decode() else None

    async def engine(self, holder: TokenHolder, body: JsonObject) -> Completions:
        return self._engine

    async def charge(self, holder: TokenHolder, provider: str, tokens_in: int, tokens_out: int) -> None:
        self.charged.append((tokens_in, tokens_out))


def nnrp_app(backing: Backing) -> Any:
    """Return the ASGI application of ``/nnrp`` with connections of its own."""
    return NnrpConsumer.as_asgi(among=Connections(backing))


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application in this event loop; return the address of its ``/nnrp``."""
    async with in_this_loop(app) as address:
        yield f"{address}/nnrp"


# -- recipes --------------------------------------------------------------------------------------------


def envelope_of(recipe: JsonObject) -> JsonObject:
    """Return the request that a recipe describes."""
    text = json.dumps(recipe["request"])
    for name, value in recipe.get("parameters", {}).items():
        text = text.replace("${" + name + "}", value)
    return {"schema_version": recipe["schema_version"], "operation": recipe["operation"], **json.loads(text)}


def check_recipe(recipe: JsonObject, events: list[JsonObject]) -> None:
    """Raise where events are not those that a recipe expects."""
    at = 0
    for wanted in recipe["expect"]["events"]:
        found = [
            place
            for place, event in enumerate(events[at:], at)
            if event["type"] == wanted["type"] and _subset(wanted.get("fields", {}), event)
        ]
        least = 0 if wanted.get("optional") else wanted.get("min_count", 1)
        assert len(found) >= least, f"{wanted} is missing in {events}"
        at = found[-1] + 1 if found else at
    kinds = {"success": "response.completed", "error": "response.error", "cancelled": "response.cancelled"}
    assert events[-1]["type"] == kinds[recipe["expect"]["terminal"]]
    check_events(events)


def _subset(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            _subset(value, found.get(name)) for name, value in wanted.items()
        )
    return bool(wanted == found)


@cache
def _contract() -> ToolCalls:
    return ToolCalls()


def check_events(events: list[JsonObject]) -> None:
    """Raise where an operation's events break the contract: its shapes, and one terminal event at the end."""
    contract = _contract()
    for event in events:
        if event["type"] in contract.schemas:
            contract.check(event)
    terminal = ["response.completed", "response.error", "response.cancelled"]
    if at_hand(contract.FILE):
        assert terminal == contract.document["wireMapping"]["terminalResult"]["terminalProfileEvents"]
    assert [event["type"] in terminal for event in events] == [False] * (len(events) - 1) + [True]


# -- an independent client ------------------------------------------------------------------------------


@contextmanager
def native(url: str, token: str = TOKEN) -> Iterator[NativeClientConnection]:
    """Connect nnrp-py's native client; blocks, so run it in a thread."""
    options = NativeClientOptions(
        "nnrp://127.0.0.1/",
        provider_routes={"websocket": NativeClientProviderRoute(f"{url}?token={token}")},
        transport_policy=TransportPolicy.FORCE_WEBSOCKET,
    )
    with connect_native_client_connection(options) as connection:
        yield connection


def native_request(envelope: JsonObject, number: int) -> SubmitRequest:
    """Return an envelope as the profile wants it submitted."""
    frame = TypedPayloadInputFrame(
        0,
        PayloadKind.STRUCTURED_EVENT,
        json.dumps(envelope).encode(),
        stream_semantics=StreamSemantics.SNAPSHOT,
    )
    # Operation and frame are told apart on purpose.
    identity = SubmitIdentity(operation_id=number + 1000, frame_id=number)
    return SubmitRequest.typed_payload(TypedPayloadSubmitInput(identity, SubmitPolicy(), (frame,)))


def native_submit(session: Any, envelope: JsonObject, number: int) -> Any:
    """Submit an envelope."""
    return session.submit_operation(native_request(envelope, number))


def native_events(
    session: Any, count: int, *, timeout_s: float = PATIENCE_S, first: Callable[[], None] | None = None
) -> dict[int, list[JsonObject]]:
    """Poll a session until ``count`` operations have ended; return their events by frame.

    ``first`` is called at the first partial result. An operation that was dropped ends with ``{"type":
    "drop", "reason": …}``.
    """
    found: dict[int, list[JsonObject]] = {}
    ended = 0
    end = time.monotonic() + timeout_s
    while ended < count:
        assert time.monotonic() < end, f"{ended} of {count} operations ended"
        for polled in session.poll_events(max_events=64, timeout_ms=200):
            header = getattr(polled, "header", None)
            if header is None:
                continue
            events = found.setdefault(header.frame_id, [])
            value, body = polled.metadata.value, polled.tail.body
            match header.message_type:
                case MessageType.PARTIAL_RESULT:
                    assert value.operation_id == header.frame_id + 1000
                    assert value.result_sequence == len(events) + 1
                    events.append(json.loads(body))
                    if first is not None:
                        first()
                        first = None
                case MessageType.RESULT_PUSH:
                    view = validate_result_push_body(value, body)
                    events.append(json.loads(bytes(view.typed_payload_frame_region)))
                    ended += 1
                case MessageType.RESULT_DROP_REASON:
                    events.append({"type": "drop", "reason": int(value.drop_reason_code)})
                    ended += 1
    return found


USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}

TEXT = [text("Hel"), text("lo"), text("", finish_reason="stop"), chunk(usage=USAGE)]

TOOLS = [
    calls(fragment(0, id="a", name="lookup", arguments="")),
    calls(fragment(0, arguments='{"q":')),
    calls(fragment(0, arguments="1}")),
    ending(),
    chunk(usage=USAGE),
]


def body(**changes: Any) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": "Hello."}], "stream": True, **changes}


async def steady(_: JsonObject) -> AsyncGenerator[JsonObject]:
    for one in TEXT:
        yield one


class Endless:
    """Streams text until it is closed, and says so."""

    def __init__(self, pause_s: float = 0.01) -> None:
        self.pause_s = pause_s
        self.closed = asyncio.Event()
        self.sent = 0

    async def __call__(self, _: JsonObject) -> AsyncGenerator[JsonObject]:
        try:
            while True:
                yield text("word ")
                self.sent += 1
                await asyncio.sleep(self.pause_s)
        finally:
            self.closed.set()


def request(**changes: Any) -> JsonObject:
    return {
        "schema_version": "openai-compatible/1",
        "operation": "chat.completions.create",
        "body": body(**changes),
    }
