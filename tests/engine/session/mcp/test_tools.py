"""MCP tools in the pure session: what is offered, approved, called and told, in any order."""

from __future__ import annotations

import base64
import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from tests.parts.engine_parts import Client, error_of, quiet
from tests.parts.examples import examples
from voiceapp.engine.session.actions import ReplyFact, StartReply
from voiceapp.text.provider import CallArguments, CallFinished, CallStarted, Finished, Returned
from voiceapp.tools.mcp.messages import CallMcpTool, ListMcpTools, McpCalled, McpListed, McpNotListed, McpTool

CALL: list[ReplyFact] = [CallStarted(0, "c", "look"), CallArguments(0, "{}"), CallFinished(0)]
LOOK, CHANGE = McpTool("look", annotations={"readOnlyHint": True}), McpTool("change")


def client_with(*tools: McpTool, **more: Any) -> Client:
    client = Client()
    client.update(tools=[{"type": "mcp", "server_label": "s", "server_url": "https://h/", **more}])
    client.take(client.session.mcp_answered(McpListed("mcpl_1", tools)))
    return client


def start(client: Client) -> tuple[str, ...]:
    """Ask for a response; return the names of the tools that it may use."""
    client.say("Hello")
    client.send("response.create")
    started = [action for action in client.actions if isinstance(action, StartReply)][-1]
    return tuple(tool.name for tool in started.request.tools)


@pytest.mark.parametrize("how", ["barge-in", "cancel"])
def test_a_call_outlives_its_response(how: str) -> None:
    client = client_with(LOOK, require_approval="never")
    start(client)
    for fact in CALL:
        client.take(client.session.reply_progressed("resp_1", fact))
    if how == "cancel":
        client.send("response.cancel")
    else:
        client.send("input_audio_buffer.append", audio=base64.b64encode(quiet(400)).decode())
        client.take(client.session.speech_started(0, 64))
    assert client.of_kind("response.done")[0]["response"]["status"] == "cancelled"
    (call,) = [action for action in client.actions if isinstance(action, CallMcpTool)]
    kinds = [
        event["type"] for event in client.take(client.session.mcp_answered(McpCalled(call.item_id, "Seen.")))
    ]
    assert kinds == ["response.mcp_call.completed", "conversation.item.done", "response.output_item.done"]
    start(client)
    request = [action for action in client.actions if isinstance(action, StartReply)][-1].request
    assert Returned(call.item_id, "Seen.") in request.history


def test_a_call_cut_off_in_its_arguments_never_runs() -> None:
    client = client_with(LOOK, require_approval="never")
    start(client)
    for fact in CALL[:2]:
        client.take(client.session.reply_progressed("resp_1", fact))
    client.send("response.cancel")
    assert client.of_kind("response.output_item.done")[0]["item"]["status"] == "incomplete"
    assert not [action for action in client.actions if isinstance(action, CallMcpTool)]


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        (None, True),
        ("always", True),
        ("never", False),
        ({"never": {"tool_names": ["look"]}}, False),
        ({"never": {"read_only": True}}, False),
        ({"never": {"tool_names": ["change"]}}, True),
        ({"never": {}}, True),
        ({"always": {"tool_names": ["look"]}, "never": {"tool_names": ["look"]}}, True),
    ],
)
def test_what_is_to_be_approved(rule: Any, asked: bool) -> None:
    client = client_with(LOOK, CHANGE, require_approval=rule)
    start(client)
    for fact in CALL:
        client.take(client.session.reply_progressed("resp_1", fact))
    assert bool([action for action in client.actions if isinstance(action, CallMcpTool)]) is not asked


@pytest.mark.parametrize(
    ("allowed", "offered"),
    [(None, ("look", "change")), (["change"], ("change",)), ({"read_only": True}, ("look",)), ([], ())],
)
def test_what_is_allowed(allowed: Any, offered: tuple[str, ...]) -> None:
    assert start(client_with(LOOK, CHANGE, allowed_tools=allowed)) == offered


def test_two_tools_of_one_name_are_told_apart() -> None:
    client = Client()
    servers = [{"type": "mcp", "server_label": label, "server_url": "https://h/"} for label in ("a", "b")]
    client.update(tools=[{"type": "function", "name": "look"}, *servers])
    for item_id in ("mcpl_1", "mcpl_2"):
        client.take(client.session.mcp_answered(McpListed(item_id, (LOOK, McpTool("say it!")))))
    assert start(client) == ("look", "look_a", "say_it_", "look_b", "say_it__b")


@pytest.mark.parametrize(
    "fault",
    [
        {"server_url": "ftp://h"}, {"server_url": None}, {"connector_id": "mail"}, {"server_label": ""},
        {"headers": {"Host": "other"}}, {"headers": {"a": "b\r\nc: d"}}, {"authorization": "a\nb"},
        {"require_approval": "sometimes"}, {"allowed_tools": "all"},
    ],
)  # fmt: skip
def test_wrong_servers_are_refused(fault: dict[str, Any]) -> None:
    tool = {"type": "mcp", "server_label": "s", "server_url": "https://h/", **fault}
    assert error_of(Client().update(tools=[tool]))["param"].startswith("session.tools[0].")


# -- any order ------------------------------------------------------------------------------------------

STEPS = st.sampled_from(
    [
        "update", "listed", "not_listed", "create", "aside", "call", "call", "cut_call", "approve", "deny",
        "called", "called", "broken", "cancel", "finish", "delete",
    ]
)  # fmt: skip


@functools.cache
def adapter() -> TypeAdapter[Any]:
    return TypeAdapter(RealtimeServerEvent)


class World:
    """Drives a session with MCP tools through steps, and checks what it says of every call."""

    def __init__(self) -> None:
        self.client = Client()
        self.calls = 0
        self.approved: set[str] = set()

    def step(self, name: str, pick: int) -> None:  # noqa: C901 - one step for each event
        client = self.client
        listings = [one.item_id for one in client.actions if isinstance(one, ListMcpTools)] or ["mcpl_0"]
        running = [one.item_id for one in client.actions if isinstance(one, CallMcpTool)] or ["mcp_0"]
        asked = self.items("mcp_approval_request") or ["mcpr_0"]
        match name:
            case "update":
                rule = ("always", "never")[pick % 2]
                server = {"type": "mcp", "server_label": "s", "server_url": f"https://h/{pick % 3}"}
                client.update(tools=[{**server, "require_approval": rule}])
            case "listed":
                client.take(
                    client.session.mcp_answered(McpListed(listings[pick % len(listings)], (LOOK, CHANGE)))
                )
            case "not_listed":
                client.take(
                    client.session.mcp_answered(McpNotListed(listings[pick % len(listings)], "Gone."))
                )
            case "create":
                client.send("response.create")
            case "aside":
                client.send("response.create", response={"conversation": "none", "input": []})
            case "call":
                self.call(pick, cut=False)
            case "cut_call":
                self.call(pick, cut=True)
            case "approve" | "deny":
                item = {"type": "mcp_approval_response", "approval_request_id": asked[pick % len(asked)]}
                client.send("conversation.item.create", item={**item, "approve": name == "approve"})
                self.approved |= {item["approval_request_id"]} if name == "approve" else set()
            case "called":
                client.take(client.session.mcp_answered(McpCalled(running[pick % len(running)], "Done.")))
            case "broken":
                error = {"type": "tool_execution_error", "message": "No."}
                client.take(client.session.mcp_answered(McpCalled(running[pick % len(running)], None, error)))
            case "cancel":
                client.send("response.cancel")
            case "finish":
                self.bring(pick, Finished())
            case "delete":
                known = [event["item"]["id"] for event in client.of_kind("conversation.item.added")] or [
                    "none"
                ]
                client.send("conversation.item.delete", item_id=known[pick % len(known)])

    def items(self, kind: str) -> list[str]:
        added = self.client.of_kind("response.output_item.added")
        return [event["item"]["id"] for event in added if event["item"]["type"] == kind]

    def call(self, pick: int, *, cut: bool) -> None:
        self.calls += 1
        name = ("look", "change", "unknown")[pick % 3]
        self.bring(pick, CallStarted(self.calls, "c", name), CallArguments(self.calls, "{}"))
        if not cut:
            self.bring(pick, CallFinished(self.calls))

    def bring(self, pick: int, *facts: ReplyFact) -> None:
        done = {event["response"]["id"] for event in self.client.of_kind("response.done")}
        started = [one.response_id for one in self.client.actions if isinstance(one, StartReply)]
        for fact in facts:
            if open_now := [one for one in started if one not in done]:
                reply = open_now[-1]
                self.client.take(self.client.session.reply_progressed(reply, fact))

    def check(self) -> None:
        for event in self.client.events:
            adapter().validate_python(event)
        for item_id in self.items("mcp_call"):
            told = [
                event["type"].removeprefix("response.")
                for event in self.client.events
                if event["type"].startswith("response.")
                and (event.get("item_id") or event.get("item", {}).get("id")) == item_id
                and not event["type"].endswith("delta")
            ]
            begun = ["output_item.added", "mcp_call_arguments.done"]
            ran = [*begun, "mcp_call.in_progress"]
            assert told in (
                begun[:1], begun, ran, [*begun, "output_item.done"],
                [*begun, "mcp_call.failed", "output_item.done"],
                [*ran, "mcp_call.completed", "output_item.done"],
                [*ran, "mcp_call.failed", "output_item.done"],
            )  # fmt: skip
        ran_once = [one.item_id for one in self.client.actions if isinstance(one, CallMcpTool)]
        assert len(set(ran_once)) == len(ran_once)
        for event in self.client.of_kind("response.output_item.done"):
            item = event["item"]
            if item["type"] == "mcp_call" and item["output"] is None and item["error"] is None:
                assert item["status"] == "incomplete"
            elif item["type"] == "mcp_call" and item["output"] is not None and item["approval_request_id"]:
                assert item["approval_request_id"] in self.approved


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 20)), max_size=40))
def test_any_order_is_legal(steps: list[tuple[str, int]]) -> None:
    world = World()
    # Most orders without these lead nowhere.
    for name, pick in [("update", 0), ("listed", 0), ("create", 0), *steps]:
        world.step(name, pick)
    world.check()


def test_a_client_cannot_have_countless_servers_asked_at_once() -> None:
    client = Client()
    for number in range(40):
        server = {"type": "mcp", "server_label": "s", "server_url": f"https://h/{number}"}
        client.update(tools=[server])
    assert sum(isinstance(one, ListMcpTools) for one in client.actions) == 32
    assert len(client.of_kind("mcp_list_tools.failed")) == 8
