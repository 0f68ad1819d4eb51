"""How often the model may call tools before it answers: a count for each turn of the user."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.relay_talk import saved, shown, tell, upstream
from voiceapp.assistants.assistant import DEFAULT_TOOL_ROUNDS, AssistantConfig
from voiceapp.conversation.actions import CallTool
from voiceapp.conversation.calls.rounds import Rounds
from voiceapp.conversation.conversation import Conversation
from voiceapp.conversation.records import ToolCallRecord
from voiceapp.protocol import events

WITHOUT = {"tool_choice": "none"}
SPOKE = {"type": "input_audio_buffer.speech_started", "audio_start_ms": 1, "item_id": "u"}


def conversation(most: int = 2) -> Conversation:
    assistant = AssistantConfig(slug="a", name="A", max_tool_rounds=most)
    talk = Conversation(assistant, (f"id_{n}" for n in count()))
    tell(talk, {"type": "session.updated", "session": {}})
    return talk


class Talk:
    """A model that calls tools in every answer, functions or those of a service's MCP servers."""

    def __init__(
        self, talk: Conversation, *, mcp: bool = False, calls: int = 1, same_id: bool = False
    ) -> None:
        self.talk, self.mcp, self.calls, self.same_id = talk, mcp, calls, same_id
        self.numbers = count(1)

    def round(self) -> list[Any]:
        """Let one response call, and end; return all that followed."""
        done = list[Any]()
        response = {"id": "r" if self.same_id else f"r{next(self.numbers)}", "conversation_id": "c"}
        done += tell(self.talk, {"type": "response.created", "response": response})
        for _ in range(self.calls):
            number = next(self.numbers)
            done += self._mcp(number, response["id"]) if self.mcp else self._function(number, response["id"])
        return [*done, *tell(self.talk, {"type": "response.done", "response": {**response, "output": []}})]

    def _function(self, number: int, response_id: str) -> list[Any]:
        where = {"response_id": response_id, "item_id": f"i{number}", "output_index": 0}
        call = {"call_id": f"c{number}", "name": "look", "arguments": "{}"}
        kind = "response.function_call_arguments.done"
        made = tell(self.talk, {"type": kind, **where, **call})
        if any(isinstance(action, CallTool) for action in made):
            made += self.talk.tool_returned(f"c{number}", "{}", status="completed", now=0)
        return made

    def _mcp(self, number: int, response_id: str) -> list[Any]:
        item = {
            "id": f"m{number}",
            "type": "mcp_call",
            "server_label": "s",
            "name": "look",
            "arguments": "{}",
        }
        where = {"response_id": response_id, "output_index": 0}
        ended = {**item, "output": "seen"}
        return [
            *tell(self.talk, {"type": "response.output_item.added", **where, "item": item}),
            *tell(self.talk, {"type": "conversation.item.added", "item": item}),
            *tell(self.talk, {"type": "response.output_item.done", **where, "item": ended}),
        ]


def asked(actions: list[Any]) -> list[Any]:
    """Return what each response that was asked for shall be."""
    return [event.get("response") for event in upstream(actions) if event["type"] == "response.create"]


def notices(actions: list[Any]) -> list[str]:
    return [event["code"] for event in shown(actions) if event.get("type") == "notice"]


@pytest.mark.parametrize(
    "model", [{}, {"mcp": True}, {"calls": 3}, {"calls": 2, "mcp": True}, {"same_id": True}]
)
def test_after_its_rounds_the_model_is_asked_to_answer_without_tools(model: dict[str, Any]) -> None:
    talk = Talk(conversation(3), **model)
    first, second, third = talk.round(), talk.round(), talk.round()
    assert (asked(first), asked(second), asked(third)) == ([None], [None], [WITHOUT])
    assert (notices(first + second), notices(third)) == ([], ["tool_rounds_spent"])
    assert "3 times" in next(e["message"] for e in shown(third) if e.get("type") == "notice")


@pytest.mark.parametrize("mcp", [False, True])
def test_a_service_that_calls_all_the_same_is_asked_no_more(mcp: bool) -> None:
    talk = Talk(conversation(2), mcp=mcp)
    talk.round()
    assert asked(talk.round()) == [WITHOUT]
    over = talk.round()
    assert (asked(over), notices(over)) == ([], ["tool_rounds_exceeded"])
    again = talk.round()
    assert (asked(again), notices(again)) == ([], []), "it is said once"


def test_a_call_over_the_rounds_is_answered_like_any_other() -> None:
    talk = Talk(conversation(1))
    assert asked(talk.round()) == [WITHOUT]
    over = talk.round()
    [output] = [event["item"] for event in upstream(over) if event["type"] == "conversation.item.create"]
    assert output["type"] == "function_call_output"
    assert [record.status for record in saved(over, ToolCallRecord)] == ["completed"]


def test_a_service_that_goes_round_by_itself_is_stopped() -> None:
    talk = Talk(conversation(1), mcp=True)
    talk.round()
    talk.round()
    begun = upstream(talk.round())
    assert [event["type"] for event in begun] == ["response.cancel"]


def typed(talk: Conversation) -> None:
    content = [{"type": "input_text", "text": "And now?"}]
    item = {"type": "message", "role": "user", "content": content}
    talk.receive_client(events.ConversationItemCreate(item=item), 0)


def spoke(talk: Conversation) -> None:
    tell(talk, SPOKE)


def held(talk: Conversation) -> None:
    tell(talk, {"type": "input_audio_buffer.committed", "item_id": "u"})


@pytest.mark.parametrize("says", [typed, spoke, held])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_whoever_says_something_new_begins_the_count_anew(says: Any, rounds: int) -> None:
    talk = Talk(conversation(2))
    for _ in range(rounds):
        talk.round()
    says(talk.talk)
    assert [asked(talk.round()) for _ in range(3)] == [[None], [WITHOUT], []]


def test_rounds_outlive_a_connection_and_an_assistant() -> None:
    talk = Talk(conversation(2))
    talk.round()
    other = AssistantConfig(slug="b", name="B", max_tool_rounds=2)
    talk.talk.hand_over(other, [], {}, silence_ms=1)
    talk.talk.disconnected(0)
    tell(talk.talk, {"type": "session.created", "session": {}})
    assert asked(tell(talk.talk, {"type": "session.updated", "session": {}})) == [None]
    assert asked(talk.round()) == [WITHOUT]


def test_an_assistant_that_says_nothing_has_the_usual_rounds() -> None:
    talk = Talk(conversation(AssistantConfig(slug="a", name="A").max_tool_rounds))
    wishes = [asked(talk.round()) for _ in range(DEFAULT_TOOL_ROUNDS + 2)]
    assert wishes == [[None]] * (DEFAULT_TOOL_ROUNDS - 1) + [[WITHOUT], [], []]


@given(st.integers(1, 64), st.lists(st.sampled_from(["turn_began", "response_began", "called"])))
def test_the_count_is_that_of_responses_that_called_since_the_last_turn(most: int, steps: list[str]) -> None:
    rounds, since, counted = Rounds(most), 0, False
    for step in steps:
        getattr(rounds, step)()
        since = 0 if step == "turn_began" else since + (step == "called" and not counted)
        counted = step == "called" or (counted and step != "response_began")
    assert (rounds.made, rounds.spent, rounds.exceeded) == (since, since >= most, since > most)
