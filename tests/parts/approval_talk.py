"""A conversation with a server's tools, joined to nothing, that a test takes step by step."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.assistants.mcp_servers import McpServer
from voiceapp.conversation.actions import Save, SendBrowser, SendUpstream
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.records import ToolCallRecord
from voiceapp.protocol import codec
from voiceapp.tools.functions import AskFirst
from voiceapp.types import JsonObject

SHOP = McpServer(server_label="shop", server_url="https://shop.example/mcp", authorization="s3cret-token")

ASSISTANT = AssistantConfig(slug="a", name="A", mcp_servers=(SHOP,))

REQUEST = {"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "shop", "name": "buy",
           "arguments": '{"n":1}'}  # fmt: skip

CALL = {"id": "mcp_1", "type": "mcp_call", "server_label": "shop", "name": "buy", "arguments": ""}

SESSION: JsonObject = {"audio": {}}


class Talk:
    """A conversation, and all that it asked for so far."""

    def __init__(self, *, ask_first: tuple[str, ...] = ()) -> None:
        self.state = Conversation(
            ASSISTANT,
            (f"id_{n}" for n in count()),
            ask_first={name: AskFirst("", name) for name in ask_first},
        )
        self.actions: list[Any] = []
        self.hear({"type": "session.updated", "session": SESSION})

    def hear(self, *told: JsonObject, now: float = 0) -> list[Any]:
        """Let the service say something; return what follows from it."""
        begun = len(self.actions)
        for event in told:
            fields = {"event_id": "e", **event}
            text = json.dumps(fields)
            self.actions += self.state.receive_server(codec.server_event(fields), text, now)
        return self.actions[begun:]

    def item(self, raw: JsonObject, *, done: bool = False, now: float = 0) -> list[Any]:
        """Let the service tell of an output item, in both of its events."""
        ends = ("conversation.item.done", "response.output_item.done")
        begins = ("response.output_item.added", "conversation.item.added")
        where = {"response_id": "r", "output_index": 0, "item": raw}
        return self.hear(*({"type": kind, **where} for kind in (ends if done else begins)), now=now)

    def asks(self, *, now: float = 0) -> None:
        """Let the model call a tool of a server that is to be allowed first, as the engine tells it."""
        where = {"response_id": "r", "item_id": "mcp_1", "output_index": 0}
        self.hear({"type": "response.created", "response": {"id": "r"}})
        self.item(CALL, now=now)
        self.hear({"type": "response.mcp_call_arguments.done", **where, "arguments": REQUEST["arguments"]})
        self.item(REQUEST, now=now)
        self.item(REQUEST, done=True, now=now)
        self.hear({"type": "response.done", "response": {"id": "r", "status": "completed"}}, now=now)

    def runs(self, outcome: str = "completed", *, now: float = 0) -> list[Any]:
        """Let the service run the call to its end."""
        begun = len(self.actions)
        where = {"item_id": "mcp_1", "output_index": 0}
        self.hear({"type": "response.mcp_call.in_progress", **where}, now=now)
        self.hear({"type": f"response.mcp_call.{outcome}", **where}, now=now)
        error = {"type": "tool_execution_error", "message": "Sold out."}
        brought = {"output": "Bought."} if outcome == "completed" else {"error": error}
        self.item(
            {**CALL, "arguments": REQUEST["arguments"], "status": outcome, **brought}, done=True, now=now
        )
        return self.actions[begun:]

    def answer(self, *, approve: bool, request: str = "mcpr_1", now: float = 0, **more: Any) -> list[Any]:
        item = {"type": "mcp_approval_response", "approval_request_id": request, "approve": approve, **more}
        return self.say({"type": "conversation.item.create", "item": item}, now=now)

    def say(self, event: JsonObject, *, now: float = 0) -> list[Any]:
        """Let the page say something."""
        begun = len(self.actions)
        self.actions += self.state.receive_client(
            codec.client_event(codec.decode_fields(json.dumps(event))), now
        )
        return self.actions[begun:]

    def tick(self, now: float) -> list[Any]:
        begun = len(self.actions)
        self.actions += self.state.tick(now)
        return self.actions[begun:]


def upstream(actions: list[Any], kind: str) -> list[JsonObject]:
    return [a.fields for a in actions if isinstance(a, SendUpstream) and a.fields["type"] == kind]


def page(actions: list[Any], kind: str) -> list[JsonObject]:
    told = [json.loads(action.text) for action in actions if isinstance(action, SendBrowser)]
    return [event for event in told if event["type"] == kind]


def records(actions: list[Any]) -> list[tuple[str, str, str]]:
    saved = [action.record for action in actions if isinstance(action, Save)]
    return [(made.name, made.status, made.output) for made in saved if isinstance(made, ToolCallRecord)]
