"""Tool call events: the contract's shapes, and the order."""

from __future__ import annotations

import itertools
import re
from typing import Any

import jsonschema
import msgspec
import pytest

from tests.parts.contracts import ToolCalls
from voiceapp.errors import LocalProtocolError, RemoteProtocolError
from voiceapp.protocol import tool_calls
from voiceapp.protocol.tool_calls import (
    AnyToolCallEvent,
    CallState,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallError,
    ToolCallFault,
    ToolCallOrder,
    ToolCallStarted,
)

CONTRACT = ToolCalls()
HEAD: dict[str, Any] = {"index": 0, "item_id": "item", "call_id": "call"}
FAULT = ToolCallFault(type="server_error", code="gone", message="It is gone.")
STARTED = ToolCallStarted(**HEAD, name="look")
DELTA = ToolCallDelta(**HEAD, arguments_delta="{}")
COMPLETED = ToolCallCompleted(**HEAD, name="look", arguments="{}")
ERROR = ToolCallError(**HEAD, error=FAULT)
FOUR: list[AnyToolCallEvent] = [STARTED, DELTA, COMPLETED, ERROR]


# -- shapes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", FOUR, ids=lambda event: event.type_name())
def test_an_event_is_what_the_contract_says_with_and_without_its_chunk(event: AnyToolCallEvent) -> None:
    for sent in (event, msgspec.structs.replace(event, openai_chunk={"id": "c"})):
        fields = tool_calls.write(sent)
        CONTRACT.check(fields)
        assert tool_calls.is_tool_call(fields)
        assert tool_calls.read(fields) == sent


def test_there_is_an_event_for_each_in_the_contract() -> None:
    known = {event.type_name() for event in FOUR}
    assert CONTRACT.document["contract"] == tool_calls.CONTRACT
    assert known == set(CONTRACT.schemas)


@pytest.mark.parametrize("name", sorted(CONTRACT.schemas))
def test_what_the_contract_refuses_is_refused(name: str) -> None:
    schema = CONTRACT.schemas[name]
    by_name = {event.type_name(): event for event in FOUR}
    valid = tool_calls.write(by_name[name])
    wrong = [{field: valid[field] for field in valid if field != left} for left in schema["required"]]
    bad: tuple[Any, ...] = (None, 7.5, "", -1, [])
    wrong += [{**valid, field: value} for field in valid for value in bad]
    wrong.append({**valid, "openai_chunk": "no object"})
    seen = 0
    for fields in wrong:
        try:
            jsonschema.validate(fields, schema)
        except jsonschema.ValidationError:
            seen += 1
            with pytest.raises(RemoteProtocolError):
                tool_calls.read(fields)
        else:
            tool_calls.read(fields)
    assert seen > len(schema["required"])


# -- order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [LocalProtocolError, RemoteProtocolError])
def test_only_the_contracts_order_passes(broken: Any) -> None:
    """The order is written down here a second time, as a pattern."""
    letters: dict[AnyToolCallEvent, str] = {STARTED: "s", DELTA: "d", COMPLETED: "c", ERROR: "e"}
    lawful = re.compile("(s(d*[ce]?)?)?")
    passed = 0
    for events in itertools.product(FOUR, repeat=4):
        order, so_far = ToolCallOrder(broken), ""
        for event in events:
            word = so_far + letters[event]
            arguments = "{}" * so_far.count("d")
            sent = msgspec.structs.replace(event, arguments=arguments) if event is COMPLETED else event
            if lawful.fullmatch(word):
                order.take(sent)
                so_far = word
            else:
                before = order.state("call")
                with pytest.raises(broken) as caught:
                    order.take(sent)
                assert caught.value.code == "tool_call_order"
                assert order.state("call") is before
        passed += len(so_far) == 4
    assert passed == 3, "sddd, sddc and sdde"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (msgspec.structs.replace(DELTA, index=1), "tool_call_mismatch"),
        (msgspec.structs.replace(DELTA, item_id="other"), "tool_call_mismatch"),
        (msgspec.structs.replace(COMPLETED, name="other"), "tool_call_mismatch"),
        (msgspec.structs.replace(COMPLETED, arguments="{} "), "tool_call_mismatch"),
        (
            msgspec.structs.replace(DELTA, arguments_delta="x" * tool_calls.MAX_ARGUMENTS_CHARS),
            "tool_call_too_large",
        ),
    ],
)
def test_what_does_not_fit_the_call_is_refused_and_changes_nothing(
    event: AnyToolCallEvent, code: str
) -> None:
    order = ToolCallOrder(LocalProtocolError)
    order.take(STARTED)
    order.take(DELTA)
    with pytest.raises(LocalProtocolError) as caught:
        order.take(event)
    assert caught.value.code == code
    order.take(COMPLETED)
    assert order.state("call") is CallState.ENDED


def test_a_reply_has_a_largest_number_of_calls() -> None:
    order = ToolCallOrder(RemoteProtocolError)
    for number in range(tool_calls.MAX_CALLS):
        order.take(msgspec.structs.replace(STARTED, call_id=f"call_{number}"))
    with pytest.raises(RemoteProtocolError) as caught:
        order.take(STARTED)
    assert caught.value.code == "too_many_tool_calls"
