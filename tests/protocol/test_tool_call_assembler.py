"""Tool call events out of chat chunks, whatever a service leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.chat_server import calls, chunk, ending, fragment, text
from tests.parts.contracts import ToolCalls
from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol import tool_calls
from voiceapp.protocol.tool_call_assembler import ToolCallAssembler
from voiceapp.protocol.tool_calls import (
    AnyToolCallEvent,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallError,
    ToolCallFault,
    ToolCallOrder,
    ToolCallStarted,
)

CONTRACT = ToolCalls()

FAULT = ToolCallFault(type="server_error", code="gone", message="It is gone.")


def run(*chunks: dict[str, Any]) -> tuple[list[AnyToolCallEvent], ToolCallAssembler]:
    """Feed chunks; every event must keep the contract and the order."""
    assembler = ToolCallAssembler("r")
    events = [event for one in chunks for event in assembler.feed(one)] + assembler.finish()
    check(events)
    return events, assembler


def check(events: list[AnyToolCallEvent]) -> None:
    order = ToolCallOrder(RemoteProtocolError)
    for event in events:
        CONTRACT.check(tool_calls.write(event))
        order.take(event)


def completed(events: list[AnyToolCallEvent]) -> list[tuple[str, str, str]]:
    return [
        (event.call_id, event.name, event.arguments)
        for event in events
        if isinstance(event, ToolCallCompleted)
    ]


@dataclass
class Planned:
    """A call as a service shall send it: pieces of arguments, and with which of them name and id go."""

    name: str
    pieces: list[str]
    name_with: int | None
    id_with: int | None


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Planned], list[dict[str, Any]]]:
    plans = [
        Planned(
            name=draw(st.text(min_size=1, max_size=5)),
            pieces=(pieces := draw(st.lists(st.text(max_size=4), min_size=1, max_size=5))),
            name_with=draw(st.none() | st.integers(0, len(pieces) - 1)),
            id_with=draw(st.none() | st.integers(0, len(pieces) - 1)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    turns = draw(st.permutations([number for number, plan in enumerate(plans) for _ in plan.pieces]))
    sent = [0] * len(plans)
    chunks: list[dict[str, Any]] = []
    open_chunk: list[dict[str, Any]] = []
    for number in turns:
        plan, piece = plans[number], sent[number]
        sent[number] += 1
        fields: dict[str, Any] = {"arguments": plan.pieces[piece]}
        if piece == plan.name_with:
            fields["name"] = plan.name
        if piece == plan.id_with:
            fields["id"] = f"id-{number}"
        open_chunk.append(fragment(number, **fields))
        if draw(st.booleans()):
            chunks.append(calls(*open_chunk))
            open_chunk = []
            chunks += draw(st.sampled_from([[], [chunk()], [text("a")], [chunk({"index": 0})]]))
    if open_chunk:
        chunks.append(calls(*open_chunk))
    chunks += draw(st.sampled_from([[ending()], [ending("stop"), chunk()]]))
    return plans, chunks


@given(streams())
def test_calls_come_out_whole_however_they_are_split_and_interleaved(
    planned: tuple[list[Planned], list[dict[str, Any]]],
) -> None:
    plans, chunks = planned
    events, assembler = run(*chunks)
    wanted = {
        f"id-{number}" if plan.id_with is not None else f"generated {plan.name}": "".join(plan.pieces)
        for number, plan in enumerate(plans)
        if plan.name_with is not None
    }
    named = [plan for plan in plans if plan.name_with is not None]
    found = completed(events)
    assert sorted((name, arguments) for _, name, arguments in found) == sorted(
        (plan.name, "".join(plan.pieces)) for plan in named
    )
    for call_id, _, arguments in found:
        if call_id.startswith("id-"):
            assert wanted[call_id] == arguments
        else:
            assert call_id.startswith("call_r_")
    assert len({call_id for call_id, _, _ in found}) == len(named)
    assert [fault.code for fault in assembler.faults] == ["tool_call_without_name"] * (
        len(plans) - len(named)
    )
    # Output items are numbered without gaps.
    items = {event.index for event in events}
    if any(text("a") == one for one in chunks):
        items.add(assembler.text_index())
    assert items == set(range(len(items)))


@given(streams(), st.data())
def test_a_stream_that_breaks_ends_every_call_that_had_started(
    planned: tuple[list[Planned], list[dict[str, Any]]], data: st.DataObject
) -> None:
    chunks = planned[1][: data.draw(st.integers(0, len(planned[1])))]
    assembler = ToolCallAssembler("r")
    events = [event for one in chunks for event in assembler.feed(one)]
    events += assembler.abort(FAULT)
    assert assembler.finish() == []
    check(events)
    begun = {event.call_id for event in events if isinstance(event, ToolCallStarted)}
    over = {event.call_id for event in events if isinstance(event, ToolCallCompleted | ToolCallError)}
    assert begun == over


@given(streams(), st.data())
def test_a_stream_that_is_over_before_its_end_completes_no_call(
    planned: tuple[list[Planned], list[dict[str, Any]]], data: st.DataObject
) -> None:
    chunks = [one for one in planned[1] if not any(c.get("finish_reason") for c in one["choices"])]
    events, _ = run(*chunks[: data.draw(st.integers(0, len(chunks)))])
    assert completed(events) == []
    begun = {event.call_id for event in events if isinstance(event, ToolCallStarted)}
    failed = [event for event in events if isinstance(event, ToolCallError)]
    assert {event.call_id for event in failed} == begun
    assert {event.error.code for event in failed} <= {"missing_terminal_event"}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_a_chunk_that_is_none_is_a_fault_of_the_service(value: Any) -> None:
    for wrong in (
        {"choices": value},
        {"choices": [value]},
        calls(value),
        calls(fragment(0, arguments=value)),
    ):
        code = "invalid_chunk"
        try:
            ToolCallAssembler("r").feed(wrong)
        except RemoteProtocolError as error:
            code = error.code
        assert code == "invalid_chunk"


def test_arguments_are_streamed_as_they_come_with_their_chunks() -> None:
    first = calls(fragment(0, id="a", name="look", arguments=""))
    second = calls(fragment(0, arguments='{"x"'))
    third = calls(fragment(0, arguments=":1}"))
    assembler = ToolCallAssembler("r")
    assert [event.type_name() for event in assembler.feed(first)] == ["response.tool_call.started"]
    (delta,) = assembler.feed(second)
    assert isinstance(delta, ToolCallDelta)
    assert (delta.arguments_delta, delta.openai_chunk) == ('{"x"', second)
    assembler.feed(third)
    last = ending()
    (done,) = assembler.feed(last)
    assert isinstance(done, ToolCallCompleted)
    assert (done.arguments, done.openai_chunk) == ('{"x":1}', last)


def test_text_and_calls_share_one_count_of_output_items() -> None:
    events, assembler = run(
        text("Wait"), calls(fragment(0, id="a", name="f")), calls(fragment(1, id="b", name="g"))
    )
    assert assembler.text_index() == 0
    assert [event.index for event in events if isinstance(event, ToolCallStarted)] == [1, 2]


def test_a_service_that_counts_every_call_0_is_understood() -> None:
    events, _ = run(
        calls(fragment(0, id="a", name="f", arguments="{}")),
        calls(fragment(0, id="b", name="g", arguments="[")),
        calls(fragment(0, arguments="]")),
        ending(),
    )
    assert completed(events) == [("a", "f", "{}"), ("b", "g", "[]")]


def test_a_service_that_does_not_count_calls_is_understood() -> None:
    events, _ = run(
        calls(fragment(id="a", name="f", arguments="{")),
        calls(fragment(arguments="}")),
        calls(fragment(id="b", name="g", arguments="[")),
        calls(fragment(arguments="]")),
        ending(),
    )
    assert completed(events) == [("a", "f", "{}"), ("b", "g", "[]")]
    events, _ = run(calls(fragment(name="f", arguments="{}"), fragment(name="g", arguments="[]")), ending())
    assert completed(events) == [("call_r_0", "f", "{}"), ("call_r_1", "g", "[]")]


def test_a_new_id_for_each_fragment_is_still_one_call() -> None:
    events, _ = run(
        calls(fragment(0, id="a", name="f", arguments="{")),
        calls(fragment(0, id="b", arguments="}")),
        ending(),
    )
    assert completed(events) == [("a", "f", "{}")]


@pytest.mark.parametrize(
    ("reason", "code"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_a_call_that_was_cut_short_is_an_error(reason: str, code: str) -> None:
    events, _ = run(
        calls(
            fragment(0, id="a", name="f", arguments="{}"), fragment(1, id="b", name="g", arguments='{"x":')
        ),
        ending(reason),
    )
    assert completed(events) == [("a", "f", "{}")]
    last = events[-1]
    assert isinstance(last, ToolCallError)
    assert (last.call_id, last.error.code) == ("b", code)


def test_a_call_that_goes_on_after_its_end_is_a_fault_of_the_service() -> None:
    assembler = ToolCallAssembler("r")
    assembler.feed(calls(fragment(0, id="a", name="f")))
    assembler.feed(ending())
    with pytest.raises(RemoteProtocolError) as caught:
        assembler.feed(calls(fragment(0, arguments="{}")))
    assert caught.value.code == "tool_call_after_end"


def test_calls_and_arguments_have_a_bound() -> None:
    assembler = ToolCallAssembler("r")
    with pytest.raises(RemoteProtocolError) as caught:
        assembler.feed(calls(*(fragment(number) for number in range(tool_calls.MAX_CALLS + 1))))
    assert caught.value.code == "too_many_tool_calls"
    half = "x" * (tool_calls.MAX_ARGUMENTS_CHARS // 2 + 1)
    for first in (fragment(0, id="a", name="f"), fragment(0, id="a")):
        assembler = ToolCallAssembler("r")
        assembler.feed(calls(first))
        assembler.feed(calls(fragment(0, arguments=half)))
        with pytest.raises(RemoteProtocolError) as caught:
            assembler.feed(calls(fragment(0, arguments=half)))
        assert caught.value.code == "tool_call_too_large"
