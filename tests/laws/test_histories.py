"""Whatever a conversation holds, each service that is sent it finds its rules kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.parts.receivers import check_chat, check_realtime, check_responses, check_turns
from voiceapp.conversation.history import history as restored
from voiceapp.conversation.items import ConversationItem
from voiceapp.engine.session.items import SessionItem, history, within
from voiceapp.gateway.contract import chat_body as gateway_body
from voiceapp.gateway.contract import read_request
from voiceapp.text.chat.provider import messages
from voiceapp.text.chat.turns import in_turns
from voiceapp.text.history import NO_OUTPUT
from voiceapp.text.model_host.responses_api import request_fields
from voiceapp.text.provider import Called, ReplyRequest, Returned, Said


@dataclass(frozen=True)
class Event:
    """Something that joins a conversation: ``kind`` is a role, ``call``, ``output`` or ``mcp``."""

    kind: str
    name: str = "a"
    text: str = "x"
    status: str = "completed"


ENDINGS: dict[str, dict[str, Any]] = {"completed": {"output": "4"}, "failed": {"error": {"type": "x"}}}
NAMES = st.sampled_from(["a", "b", "c"])
EVENTS = st.lists(
    st.one_of(
        st.builds(Event, st.sampled_from(["user", "user", "assistant", "system"]), text=st.text(max_size=9)),
        st.builds(
            Event,
            st.just("call"),
            NAMES,
            st.sampled_from(["", "{}", '{"q": 1}', '{"q": ', "[1]", "null"]),
            st.sampled_from(["completed", "completed", "incomplete", "in_progress"]),
        ),
        st.builds(Event, st.just("output"), NAMES, st.text(max_size=9)),
        st.builds(
            Event,
            st.just("mcp"),
            NAMES,
            st.just("{}"),
            st.sampled_from(["completed", "failed", "in_progress"]),
        ),
    ),
    max_size=14,
)
# A user speaks while a tool runs, and again when its output is there.
SPOKEN_BETWEEN = [
    Event("user"), Event("call", "a", "{}"), Event("user", text="And be quick."), Event("output", "a", "4"),
    Event("user"),
]  # fmt: skip
SEVERAL = [Event("call", "a", "{}"), Event("call", "b", "{}"), Event("output", "b"), Event("user")]
CUT = [Event("call", "a", '{"q": ', "incomplete"), Event("output", "a"), Event("assistant")]


def session_item(number: int, event: Event) -> SessionItem:
    fields: dict[str, Any] = {"id": f"item_{number}"}
    match event.kind:
        case "call":
            fields |= {"type": "function_call", "status": event.status, "call_id": event.name, "name": "look"}
            fields["arguments"] = event.text
        case "output":
            fields |= {"type": "function_call_output", "call_id": event.name, "output": event.text}
        case "mcp":
            error = {"type": "x"} if event.status == "failed" else None
            fields |= {"type": "mcp_call", "status": event.status, "name": "look", "arguments": event.text}
            fields |= {"error": error, "output": "4"}
        case role:
            part = {"type": "output_text" if role == "assistant" else "input_text", "text": event.text}
            fields |= {"type": "message", "role": role, "status": "completed", "content": [part]}
    return SessionItem(fields)


def conversation_item(number: int, event: Event) -> ConversationItem:
    item = ConversationItem(item_id=f"item_{number}", status=event.status, generated_text=event.text)
    match event.kind:
        case "call":
            item = replace(item, type="function_call", call_id=event.name, name="look", generated_text="")
            item.arguments = event.text
        case "output":
            item = replace(item, type="function_call_output", call_id=event.name)
        case "mcp":
            raw = ENDINGS.get(event.status, {})
            item = replace(
                item, type="mcp_call", name="look", arguments=event.text, raw=raw, generated_text=""
            )
        case role:
            item.role = role
    return item


@given(EVENTS, st.lists(st.integers(0, 13), max_size=4), st.integers(0, 40) | st.just(10_000))
@example(SPOKEN_BETWEEN, [], 10_000)
@example(SPOKEN_BETWEEN[:3], [], 10_000)
@example(SEVERAL, [], 10_000)
@example(CUT, [], 10_000)
def test_whoever_thinks_for_the_engine_is_sent_what_it_takes(
    events: list[Event], deleted: list[int], tokens: int
) -> None:
    items = [session_item(number, event) for number, event in enumerate(events) if number not in deleted]
    request = ReplyRequest("Be kind.", within(history(items), tokens), spoken=False)
    chat = json.loads(json.dumps(messages(request)))
    check_chat(chat)
    check_turns(in_turns(chat))
    check_responses(request_fields(request, "", {})["input"])


@given(EVENTS, st.lists(st.integers(0, 13), max_size=4))
@example(SPOKEN_BETWEEN, [])
@example(SEVERAL, [])
@example([Event("output", "a"), Event("call", "a", "{}")], [])
@example([Event("call", "a", "{}"), Event("output", "a"), Event("call", "a", "{}"), Event("output", "a")], [])
def test_a_new_connection_is_given_a_conversation_that_it_takes(
    events: list[Event], deleted: list[int]
) -> None:
    items = [conversation_item(number, event) for number, event in enumerate(events) if number not in deleted]
    check_realtime([create["item"] for create in restored(items)])


ROLES = st.sampled_from(["system", "user", "assistant"])


@given(st.lists(st.tuples(ROLES, st.text(max_size=9)), min_size=1, max_size=8))
@example([("user", "a"), ("system", "b"), ("user", "c"), ("user", "d")])
@example([("assistant", "a"), ("assistant", "b")])
def test_messages_of_programs_are_sent_in_an_order_that_services_take(said: list[tuple[str, str]]) -> None:
    asked = read_request({"messages": [{"role": role, "content": text} for role, text in said]})
    sent = gateway_body(asked)["messages"]
    check_chat(sent)
    assert [message["role"] for message in sent].count("system") == 1
    assert sent[0]["role"] == "system"
    assert all(one["role"] != other["role"] for one, other in pairwise(sent))
    check_turns(in_turns(sent))
    # Nobody's words are lost.
    told = "\n\n".join(message["content"] for message in sent)
    assert all(text in told for _, text in said)


def test_a_user_who_speaks_while_a_tool_runs_is_answered() -> None:
    asked = history([session_item(number, event) for number, event in enumerate(SPOKEN_BETWEEN[:3])])
    assert messages(ReplyRequest("", asked, spoken=False))[1:] == [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": NO_OUTPUT},
        {"role": "user", "content": "And be quick."},
    ]  # fmt: skip
    later = history([session_item(number, event) for number, event in enumerate(SPOKEN_BETWEEN)])
    assert messages(ReplyRequest("", later, spoken=False))[2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "4"},
        {"role": "user", "content": "And be quick.\nx"},
    ]


def test_a_call_that_was_cut_off_is_not_told_of() -> None:
    items = [session_item(number, event) for number, event in enumerate(CUT)]
    assert history(items) == (Returned("a", "x"), Said("assistant", "x"))
    assert [one["role"] for one in messages(ReplyRequest("", history(items), spoken=False))] == ["assistant"]
    assert not [item for item in history(items) if isinstance(item, Called)]
