"""The pages: who may see them, and what their templates are given."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.test import Client
from django.utils import timezone

from tests.parts.kept_sessions import kept
from voiceapp.conversation.records import ItemRecord
from voiceapp.records.models import Assistant, Item, Session

pytestmark = pytest.mark.django_db(transaction=True)


def said(name: str, role: str, text: str, **fields: Any) -> ItemRecord:
    values: dict[str, Any] = {"previous_item_id": None, "raw": {}, **fields}
    return ItemRecord(item_id=name, type="message", role=role, generated_text=text, **values)


@pytest.fixture
def page(client: Client, user: User) -> Client:
    """A browser in which the user is signed in."""
    client.force_login(user)
    return client


@pytest.mark.parametrize("address", ["/", "/check/", "/sessions/", f"/sessions/{UUID(int=7)}/"])
def test_strangers_are_sent_to_the_log_in_page(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 302
    assert response.headers["Location"] == f"/login/?next={address}"


def test_the_page_is_told_about_assistants_but_not_their_instructions(page: Client) -> None:
    Assistant.objects.create(slug="phone", name="Phone", position=5, input_format="audio/pcmu",
                             output_format="audio/pcma", turn_detection=None, voice="alloy",
                             voices=["verse", "alloy"])  # fmt: skip
    Assistant.objects.create(slug="off", name="Off", enabled=False)
    response = page.get("/")
    assert response.context["page_config"] == {
        "socket": "/ws/voice/",
        "assistants": [
            {"slug": "assistant", "name": "Assistant", "input_format": "audio/pcm",
             "output_format": "audio/pcm", "push_to_talk": False, "voice": "", "voices": []},
            {"slug": "phone", "name": "Phone", "input_format": "audio/pcmu",
             "output_format": "audio/pcma", "push_to_talk": True, "voice": "alloy",
             "voices": ["alloy", "verse"]},
        ],
        "user": "ada",
        "isAdmin": False,
    }  # fmt: skip
    assert b"attentive" not in response.content
    assert "no-store" in response.headers["Cache-Control"]


def test_no_page_holds_a_script_or_style_that_its_policy_forbids(page: Client, user: User) -> None:
    session_id = kept(user, said("a", "user", "hello"))
    for address in ("/", "/check/", "/sessions/", f"/sessions/{session_id}/"):
        text = page.get(address).content.decode()
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        for script in re.findall(r"<script[^>]*>", text):
            assert "src=" in script or 'type="application/json"' in script


def test_the_check_is_told_its_sockets_and_names_what_it_loads(page: Client) -> None:
    response = page.get("/check/")
    assert response.context["page_config"] == {"echo": "/ws/echo/", "socket": "/ws/voice/"}
    assert "no-store" in response.headers["Cache-Control"]
    text = response.content.decode()
    assert text.count("<h1>") == 1
    assert 'data-worklet="capture"' in text
    for module in ("check/app.js", "check/chirp.js", "audio/resample.js", "audio/microphone.js"):
        assert f'<link rel="modulepreload" href="/static/voiceapp/{module}">' in text
    assert "ui/view.js" not in text, "it loads nothing of the conversation"
    assert page.post("/check/").status_code == 405


def test_the_pages_beside_the_conversation_lead_to_the_check(page: Client) -> None:
    assert b'href="/check/"' in page.get("/sessions/").content


def test_recent_sessions_have_titles(page: Client, user: User) -> None:
    kept(user)
    kept(user, said("a", "assistant", "Hello?"))
    kept(user, said("s", "system", "be kind"), said("a", "user", "word " * 40), said("b", "user", "later"))
    kept(User.objects.create_user("eve"), said("a", "user", "a secret"))
    recent = list(page.get("/").context["recent"])
    assert [one.title for one in recent] == [("word " * 16).strip()[:79].rstrip() + "…", "Assistant"]
    assert recent[0].duration == "1:05"
    assert recent[0].started_at == recent[0].started_at


def test_sessions_are_listed_in_pages(page: Client, user: User) -> None:
    config = {"slug": "a", "name": "A"}
    Session.objects.bulk_create(
        Session(user=user, configuration=config, upstream="embedded", process="p", started_at=timezone.now())
        for _ in range(60)
    )
    Item.objects.bulk_create(
        Item(session=one, item_id="a", type="message", role="assistant") for one in Session.objects.all()
    )
    first, last = (
        page.get("/sessions/").context["page_obj"],
        page.get("/sessions/?page=3").context["page_obj"],
    )
    assert (len(first), len(last), first.paginator.count) == (25, 10, 60)
    assert page.get("/sessions/?page=nonsense").status_code == 200


def test_the_list_says_how_often_the_user_said_something(
    page: Client, user: User, admin_client: Client
) -> None:
    silent = [
        kept(user),
        kept(user, said("s", "system", "be kind"), said("noise", "user", "", transcript_status="completed")),
    ]
    kept(user, said("a", "assistant", "Is anybody there?"))
    kept(user, said("a", "user", "one"), said("b", "assistant", "two"))
    kept(user, said("a", "user", "one"), said("b", "assistant", "two"),
         said("c", "user", "", transcript_status="failed"))  # fmt: skip
    response = page.get("/sessions/")
    assert [one.times_said for one in response.context["page_obj"]] == [2, 1, 0]
    told = re.findall(r"<span>(\d+ message[^<]*)</span>", response.content.decode())
    assert told == ["2 messages from you", "1 message from you"]
    listed = admin_client.get("/admin/records/session/").context["cl"].result_list
    assert {one.id for one in listed} >= set(silent)


def test_a_session_is_shown_in_order_with_what_was_heard(page: Client, user: User) -> None:
    session_id = kept(
        user,
        said("answer", "assistant", "one two three four", previous_item_id="question", heard_text="one two",
             cut_ms=700),
        said("question", "user", "count", transcript_status="completed"),
        said("mumble", "user", "", previous_item_id="answer", transcript_status="failed"),
        said("late", "user", "", previous_item_id="mumble", transcript_status="pending"),
        said("operator", "system", "the operator's own words"),
        ItemRecord(item_id="call", previous_item_id="late", type="function_call",
                   raw={"name": "clock", "arguments": "{}"}),
        ItemRecord(item_id="output", previous_item_id="call", type="function_call_output",
                   raw={"output": "12:00"}),
    )  # fmt: skip
    response = page.get(f"/sessions/{session_id}/")
    lines = {line.item_id: line for line in response.context["items"]}
    assert list(lines) == ["question", "answer", "mumble", "late", "call", "output"]
    answer = lines["answer"]
    assert (answer.heard_text, answer.unheard_text, answer.cut_ms) == ("one two", " three four", 700)
    assert [name for name, line in lines.items() if line.not_transcribed] == ["mumble", "late"]
    assert lines["call"].text == "clock({})"
    assert b"not transcribed" in response.content
    assert b'<h2 class="who">Result</h2>' in response.content
    assert b"own words" not in response.content


def test_each_answer_is_that_of_the_assistant_who_gave_it(
    page: Client, user: User, admin_client: Client
) -> None:
    session_id = kept(
        user,
        said("old", "assistant", "Kept before names were."),
        said("first", "assistant", "I am Ada.", previous_item_id="old", speaker="Ada"),
        said("asked", "user", "Let me talk to Grace.", previous_item_id="first"),
        said("second", "assistant", "I am Grace.", previous_item_id="asked", speaker="<b>Grace</b>\u202e"),
    )
    shown = page.get(f"/sessions/{session_id}/").content.decode()
    names = re.findall(r'<h2 class="who">(.*?)</h2>', shown)
    grace = "&lt;b&gt;Grace&lt;/b&gt;\ufffd"
    assert names == ["<bdi>Assistant</bdi>", "<bdi>Ada</bdi>", "You", f"<bdi>{grace}</bdi>"]
    read = admin_client.get(f"/admin/records/session/{session_id}/change/").content.decode()
    assert [name in read for name in (">Ada<", f">{grace}<")] == [True, True]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (
            '{"error": {"code": "not_found", "message": "There is no such note."}}',
            "failed: There is no such note.",
        ),
        ('{"error": {"code": 7}}', '{"error": {"code": 7}}'),
        ('{"error": "no"}', '{"error": "no"}'),
        ('["error"]', '["error"]'),
        ("[" * 5_000, "[" * 5_000),
        ("7", "7"),
    ],
)
def test_what_a_tool_failed_of_is_shown_as_a_sentence(
    page: Client, user: User, output: str, shown: str
) -> None:
    kinds: list[dict[str, Any]] = [{"raw": {"output": output}}, {"raw": {}, "generated_text": output}]
    for fields in kinds:
        item = ItemRecord(item_id="output", previous_item_id=None, type="function_call_output", **fields)
        (line,) = page.get(f"/sessions/{kept(user, item)}/").context["items"]
        assert line.text == shown


def test_a_live_sessions_transcript_is_still_due(page: Client, user: User) -> None:
    session_id = kept(user, said("a", "user", "", transcript_status="pending"), ended=False)
    (line,) = page.get(f"/sessions/{session_id}/").context["items"]
    assert (line.transcript_status, line.not_transcribed) == ("pending", False)


def test_somebody_elses_session_is_not_found(page: Client) -> None:
    session_id = kept(User.objects.create_user("eve"), said("a", "user", "a secret"))
    assert page.get(f"/sessions/{session_id}/").status_code == 404
    assert page.get(f"/sessions/{uuid4()}/").status_code == 404


HOSTILE = "<script>alert(1)</script>\u202etxet\u202c\x00\x1b[31m =cmd|' /C calc'!A0 <b>"


def test_an_ended_session_can_be_continued_by_its_user_alone(page: Client, user: User) -> None:
    ended, live = kept(user, said("a", "user", "Teach me chess.")), kept(user, ended=False)
    other = kept(User.objects.create_user("eve"))
    assert f'href="/?continue={ended}"' in page.get("/sessions/").content.decode()
    assert f'href="/?continue={ended}"' in page.get(f"/sessions/{ended}/").content.decode()
    assert "?continue=" not in page.get(f"/sessions/{live}/").content.decode()
    response = page.get(f"/?continue={ended}")
    began = Session.objects.get(id=ended).started_at.isoformat()
    continues = {"id": str(ended), "assistant": "assistant", "at": began}
    assert response.context["page_config"]["continues"] == continues
    assert "Teach me chess." in response.content.decode()
    for refused in (live, other, UUID(int=3), "x", ""):
        assert page.get(f"/?continue={refused}").status_code == 404


def test_sessions_that_continue_each_other_are_linked(page: Client, user: User, admin_client: Client) -> None:
    first, second = kept(user, said("a", "user", "One.")), kept(user, said("b", "user", "Two."))
    Session.objects.filter(id=second).update(continued_from=first)
    assert f'Continued in <a href="/sessions/{second}/"' in page.get(f"/sessions/{first}/").content.decode()
    assert f'Continues <a href="/sessions/{first}/"' in page.get(f"/sessions/{second}/").content.decode()
    for one, other in ((first, second), (second, first)):
        shown = admin_client.get(f"/admin/records/session/{one}/change/").content.decode()
        assert f'href="/admin/records/session/{other}/change/"' in shown


def test_every_date_says_its_zone_and_can_be_told_in_the_readers(
    page: Client, user: User, admin_client: Client
) -> None:
    first, second = kept(user, said("a", "user", "One.")), kept(user, said("b", "user", "Two."))
    night = datetime(2026, 11, 30, 23, 38, tzinfo=UTC)
    Session.objects.filter(id=second).update(continued_from=first)
    Session.objects.update(started_at=night, time_zone="Asia/Tokyo")
    long = '<time datetime="2026-11-30T23:38:00Z" data-form="long">30 November 2026, 23:38 UTC</time>'
    short = '<time datetime="2026-11-30T23:38:00Z" data-form="short">30 Nov, 23:38 UTC</time>'
    for address, times in (("/sessions/", [long, long]), (f"/sessions/{first}/", [long, short]),
                           (f"/sessions/{second}/", [long]), ("/", [short, short])):  # fmt: skip
        shown = page.get(address).content.decode()
        assert re.findall(r"<time.*?</time>", shown) == times
        assert "voiceapp/ui/times.js" in shown
        # Where no script may write it anew either: the name of a file that is saved.
        assert "2026-11-30 23.38" not in shown.replace("2026-11-30 23.38 UTC", "")
    shown = admin_client.get(f"/admin/records/session/{first}/change/").content.decode()
    assert long in shown
    assert "Asia/Tokyo" in shown
    assert "voiceapp/ui/times.js" in shown


def test_what_was_said_is_inert(page: Client, user: User) -> None:
    Assistant.objects.filter(slug="assistant").update(name=HOSTILE.replace("\0", ""))
    session_id = kept(
        user, said("a", "user", HOSTILE), said("b", "assistant", HOSTILE, heard_text=HOSTILE[:20])
    )
    for address in ("/", "/sessions/", f"/sessions/{session_id}/"):
        text = page.get(address).content.decode()
        assert "<script>alert" not in text
        assert not set(text) & set("\u202e\u202c\x00\x1b")


@pytest.mark.parametrize("signed_in", [True, False])
def test_what_cannot_be_shown_is_told_in_the_sites_own_looks(
    client: Client, user: User, monkeypatch: pytest.MonkeyPatch, signed_in: bool
) -> None:
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    if signed_in:
        client.force_login(user)
        strict.force_login(user)

    def fail(token: str) -> None:
        raise RuntimeError("s3cret reasons")

    def refuse(token: str) -> None:
        raise PermissionDenied("s3cret reasons")

    monkeypatch.setattr("voiceapp.web.views.knows_token", fail)
    answers = {
        "There is no such page": (404, client.get("/no/such/page")),
        "That did not go through": (403, strict.post("/logout/")),
        "Something went wrong here": (500, strict.get("/signin/x")),
    }
    monkeypatch.setattr("voiceapp.web.views.knows_token", refuse)
    answers["This is not open to you"] = (403, client.get("/signin/x"))
    for title, (status, answer) in answers.items():
        text = answer.content.decode()
        assert answer.status_code == status
        assert f"<h1>{title}</h1>" in text
        assert 'class="primary" href="/"' in text
        assert "base.css" in text
        assert not re.search(r"<style|\sstyle=|<script|s3cret", text)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"REMOTE_ADDR": "127.0.0.1"}, True),
        ({"REMOTE_ADDR": "::1"}, True),
        ({"REMOTE_ADDR": "203.0.113.7"}, False),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.7"}, False),
    ],
)
def test_a_name_that_the_site_does_not_answer_to_is_said(headers: dict[str, str], told: bool) -> None:
    asked = f"<b>evil.example</b>{'x' * 1000}"
    client = Client(headers={"host": asked})
    client.defaults.update(headers)
    answer = client.get("/")
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "&lt;b&gt;evil.example&lt;/b&gt;xxx" in text
    assert len(text) < 8_000
    assert "x" * 300 not in text
    assert ("VOICEAPP_ALLOWED_HOSTS" in text) is told
    assert "base.css" in text
    assert not re.search(r"<style|\sstyle=|<script", text)


def test_another_odd_request_names_no_host(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise SuspiciousOperation("s3cret reasons")

    monkeypatch.setattr("voiceapp.web.views.own_sessions", refuse)
    answer = page.get("/sessions/")
    assert answer.status_code == 400
    text = answer.content.decode()
    assert "<h1>That was not understood</h1>" in text
    assert not re.search(r"s3cret|testserver|ALLOWED_HOSTS", text)


def test_a_session_that_ended_early_says_why_to_its_user_and_to_administrators(
    page: Client, user: User, admin_client: Client
) -> None:
    lost, well = kept(user, said("a", "user", "One.")), kept(user, said("b", "user", "Two."))
    why = {"end_code": "upstream_unreachable", "end_message": "The service <cannot> be reached."}
    Session.objects.filter(id=lost).update(expected=False, end_reason="upstream_refused", **why)
    Session.objects.filter(id=well).update(end_code="hung_up", end_message="The conversation has ended.")
    assert "The service &lt;cannot&gt; be reached." in page.get(f"/sessions/{lost}/").content.decode()
    assert "The conversation has ended." not in page.get(f"/sessions/{well}/").content.decode()
    read = admin_client.get(f"/admin/records/session/{lost}/change/").content.decode()
    assert "The service &lt;cannot&gt; be reached. <code>upstream_unreachable</code>" in read
    listed = admin_client.get("/admin/records/session/?end_code=upstream_unreachable").content.decode()
    assert "upstream refused: unreachable" in listed
    assert str(lost) in listed
    assert str(well) not in listed
