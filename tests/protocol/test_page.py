"""The page's protocol: what is declared, what is sent, and what is written from the declaration agree."""

from __future__ import annotations

import inspect
import re

import msgspec
import pytest

from docs import generate, page_protocol
from docs.page_examples import EXAMPLES
from tests.parts.page_messages import check
from tests.parts.places import ROOT
from voiceapp.conversation.actions import SendBrowser
from voiceapp.errors import DecodeError
from voiceapp.protocol import codec, page
from voiceapp.protocol.close_codes import CloseCode
from voiceapp.protocol.events import UnknownEvent
from voiceapp.protocol.page import (
    CLIENT_MESSAGES,
    SERVER_MESSAGES,
    ClientMessage,
    Notice,
    Ping,
    SessionStart,
)
from voiceapp.relay.session.ending import REPLACED, SLOW, EndReason
from voiceapp.relay.session.outbox import Outbox
from voiceapp.types import JsonObject

FOLDER = ROOT / "tests" / "fixtures" / "page"
FIXTURES = {path.name.removesuffix(".json"): path.read_bytes().rstrip(b"\n") for path in FOLDER.iterdir()}

each_fixture = pytest.mark.parametrize("name", sorted(FIXTURES))
each_message = pytest.mark.parametrize("name", [*CLIENT_MESSAGES, *SERVER_MESSAGES])


def structs() -> dict[str, type[msgspec.Struct]]:
    return {
        **CLIENT_MESSAGES,
        **SERVER_MESSAGES,
        **page.REALTIME_CLIENT_EVENTS,
        **page.REALTIME_SERVER_EVENTS,
    }


# -- the examples ---------------------------------------------------------------------------------------


def test_every_message_has_an_example() -> None:
    assert {*CLIENT_MESSAGES, *SERVER_MESSAGES} <= FIXTURES.keys()


def test_no_example_is_left_of_a_message_that_is_gone() -> None:
    assert FIXTURES.keys() == EXAMPLES.keys()


@each_fixture
def test_an_example_is_read_and_written_to_the_same_bytes(name: str) -> None:
    struct = structs()[name]
    message = msgspec.json.decode(FIXTURES[name], type=struct)
    assert message == EXAMPLES[name]
    if isinstance(message, ClientMessage):
        assert msgspec.json.encode(message) == FIXTURES[name]
    else:
        assert page.write(message).encode() == FIXTURES[name]


@each_message
def test_every_member_says_what_it_means(name: str) -> None:
    struct = structs()[name]
    parts = [struct, *page_protocol.inner_structs(struct)]
    assert all(inspect.getdoc(part) for part in parts)
    assert all(member.meaning for part in parts for member in page_protocol.members(part))


def test_the_document_the_page_s_types_and_the_examples_are_what_the_declaration_says() -> None:
    assert not generate.outdated(), "run python -m docs.generate"


# -- to the page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SERVER_MESSAGES))
def test_a_message_goes_out_with_its_number_in_front(name: str) -> None:
    message = EXAMPLES[name]
    assert not isinstance(message, ClientMessage)
    outbox = Outbox()
    outbox.put_text(SendBrowser(message).text)
    sent = outbox.take()
    assert sent is not None
    assert sent.text == f'{{"seq":1,{FIXTURES[name].decode()[1:]}'
    if name != "session.resumed":
        check(sent.text)


def test_an_event_of_the_service_goes_out_as_it_came() -> None:
    text = '{ "type": "x.new", "event_id": "e" }'
    assert SendBrowser(text).text == text


def test_half_a_character_does_not_keep_a_message_from_going_out() -> None:
    text = SendBrowser(Notice(code="c", message="half \ud83d", level="info")).text
    assert msgspec.json.decode(text)["message"] == "half ?"


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"pong","odd":1}',
        '{"type":"audio.cut","item_id":"a"}',
        '{"type":"audio.cut","response_id":"r","item_id":"a"}',
        '{"type":"approval.settled","approval_request_id":"a","outcome":"maybe"}',
        '{"type":"notice","code":"c","message":"m","level":"info","seq":1}',
        '{"type":"response.tool_call.delta","index":0,"item_id":"i","call_id":"c","arguments_delta":"","odd":1}',
        '{"type":"notice.new","code":"c"}',
        '{"type":"response.output_audio.delta","event_id":"e"}',
    ],
)
def test_the_tests_notice_what_is_not_declared(text: str) -> None:
    with pytest.raises((AssertionError, msgspec.ValidationError, DecodeError)):
        check(text)


def test_the_types_of_messages_are_written_in_the_declaration_alone() -> None:
    names = "|".join(map(re.escape, (*CLIENT_MESSAGES, *SERVER_MESSAGES)))
    for package in ("conversation", "relay"):
        for path in (ROOT / "voiceapp" / package).rglob("*.py"):
            assert not re.findall(rf'"({names})"', path.read_text()), path


# -- from the page --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CLIENT_MESSAGES.keys() - {"session.start"}))
def test_a_message_of_the_page_is_read(name: str) -> None:
    assert page.read(codec.decode_fields(FIXTURES[name])) == EXAMPLES[name]


def test_the_first_message_is_read() -> None:
    assert page.read_start(FIXTURES["session.start"].decode()) == EXAMPLES["session.start"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"assistant":"guide"}',
        '{"type":"session.end"}',
        '{"type":"session.start","assistant":1}',
        '{"type":"session.start","continue":"yesterday"}',
        '{"type":"session.start","resume":{"seq":1}}',
        '{"type":"session.start","audio":{"input":1}}',
        "[" * 10_000,
    ],
)
def test_what_begins_no_session_is_noticed(text: str) -> None:
    assert page.read_start(text) is None


def test_what_is_not_declared_is_passed_over() -> None:
    assert page.read_start('{"type":"session.start","odd":1,"assistant":null}') == SessionStart()
    assert page.read({"type": "ping", "seq": 4, "odd": 1}) == Ping(seq=4)


def test_a_later_start_is_an_event_that_nobody_knows() -> None:
    assert isinstance(page.read({"type": "session.start"}), UnknownEvent)


def test_realtime_events_are_read_as_such() -> None:
    assert page.read({"type": "response.create"}) == EXAMPLES["response.create"]


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"type": "ping", "seq": "4"}, "invalid_type", "seq"),
        ({"type": "playback.report"}, "missing_required_parameter", "item_id"),
        ({"type": "playback.report", "item_id": "a", "played_ms": "4"}, "invalid_type", "played_ms"),
        ({"type": "response.cancel", "response_id": 4}, "invalid_type", "response_id"),
    ],
)
def test_a_malformed_message_is_refused_as_an_event_is(fields: JsonObject, code: str, param: str) -> None:
    with pytest.raises(DecodeError) as refused:
        page.read(fields)
    assert (refused.value.code, refused.value.param) == (code, param)
    assert f"'{param}'" in refused.value.message


# -- close codes ----------------------------------------------------------------------------------------


def test_every_end_of_a_session_has_a_close_code_and_words() -> None:
    assert all(isinstance(reason.close_code, CloseCode) and reason.words for reason in EndReason)
    assert all(isinstance(code, CloseCode) for code, _ in (REPLACED, SLOW))
    assert len({reason.reason for reason in EndReason}) == len(EndReason)


def test_every_close_code_has_words_of_its_own_and_is_used() -> None:
    assert len({code.words for code in CloseCode}) == len(CloseCode)
    folders = [ROOT / "voiceapp" / name for name in ("relay", "records")]
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    assert {code.name for code in CloseCode} == set(re.findall(r"\bCloseCode\.([A-Z_]+)", sources))
