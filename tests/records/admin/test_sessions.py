"""The admin: sessions that can be found, read and not changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.parts.admin_pages import HOSTILE
from voiceapp.records.models import Assistant, Item, Response, Session, ToolCall

pytestmark = pytest.mark.django_db(transaction=True)


def session(user: User, *texts: str, name: str = "Ada's helper", **fields: Any) -> Session:
    """Return a kept session in which the user said ``texts``."""
    started = datetime(2026, 3, 1, 12, tzinfo=UTC)
    values: dict[str, Any] = {
        "upstream": "embedded", "process": "p", "started_at": started, "end_reason": "hung_up",
        "expected": True,
        "ended_at": started + timedelta(minutes=2), "duration_ms": 120_000, "item_count": len(texts),
        **fields,
    }  # fmt: skip
    kept = Session.objects.create(user=user, configuration={"slug": "a", "name": name}, **values)
    for number, text in enumerate(texts):
        Item.objects.create(
            session=kept, item_id=f"item_{number}", previous_item_id=f"item_{number - 1}" if number else None,
            type="message", role="user", generated_text=text, started_ms=number * 61_000, raw={},
        )  # fmt: skip
    return kept


def found(client: Client, query: str = "") -> list[str]:
    """Return the titles in the list."""
    response = client.get(f"/admin/records/session/?{query}")
    assert response.status_code == 200
    return [one.title for one in response.context["cl"].result_list]


def test_sessions_are_found_by_word_user_tool_and_id(admin_client: Client, user: User) -> None:
    first = session(user, "the weather in Rome", "the weather in Oslo")
    second = session(User.objects.create_user("eve"), "a train to Rome")
    ToolCall.objects.create(session=second, call_id="c", name="timetable")
    assert found(admin_client, "q=weather") == ["the weather in Rome"]
    assert sorted(found(admin_client, "q=rome")) == ["a train to Rome", "the weather in Rome"]
    assert found(admin_client, "q=eve") == ["a train to Rome"]
    assert found(admin_client, "q=timetable") == ["a train to Rome"]
    assert found(admin_client, f"q={first.id}") == ["the weather in Rome"]
    assert found(admin_client, "q=nothing") == []


def test_sessions_are_filtered(admin_client: Client, user: User) -> None:
    session(user, "live", ended_at=None, end_reason="", expected=None)
    lost = session(user, "lost", end_reason="upstream_lost", expected=False, upstream="azure-ga")
    session(user, "fine", started_at=datetime(2025, 7, 1, tzinfo=UTC))
    Response.objects.create(session=lost, response_id="r", status="failed")
    assert found(admin_client, "ending=live") == ["live"]
    assert found(admin_client, "ending=expected") == ["fine"]
    assert found(admin_client, "ending=unexpected") == ["lost"]
    assert found(admin_client, "upstream=azure-ga") == ["lost"]
    assert found(admin_client, "end_reason=upstream_lost") == ["lost"]
    assert found(admin_client, "responses__status=failed") == ["lost"]
    assert found(admin_client, "started_at__year=2025") == ["fine"]


def test_the_list_costs_the_same_for_one_session_and_for_many(
    admin_client: Client, user: User, django_assert_max_num_queries: Any
) -> None:
    for _ in range(30):
        session(user, "hello")
    with django_assert_max_num_queries(14):
        assert len(found(admin_client)) == 30


@pytest.fixture
def told(user: User) -> Session:
    """A session with everything in it."""
    kept = session(user, "what time is it", "", recording="recordings/x.flac")
    Item.objects.filter(item_id="item_1").update(transcript_status="failed")
    Item.objects.create(session=kept, item_id="answer", previous_item_id="item_0", type="message",
                        role="assistant", generated_text="It is noon in Paris.", heard_text="It is noon",
                        cut_ms=800, raw={}, started_ms=3_000)  # fmt: skip
    Item.objects.create(session=kept, item_id="prompt", previous_item_id=None, type="message", role="system",
                        generated_text="Be brief.", raw={})  # fmt: skip
    usage = {"total_tokens": 12, "input_token_details": {"audio_tokens": 5}}
    for number, status in enumerate(("completed", "failed")):
        Response.objects.create(session=kept, response_id=f"resp_{number}", status=status, usage=usage,
                                latency_ms=240,
                                status_details={"error": {"code": "rate_limit_exceeded"}})  # fmt: skip
    ToolCall.objects.create(session=kept, call_id="c", name="clock", arguments='{"zone": "Paris"}',
                            output="12:00", status="completed", started_ms=1000, ended_ms=1250)  # fmt: skip
    return kept


def test_one_session_shows_transcript_player_answers_calls_and_usage(
    admin_client: Client, told: Session
) -> None:
    response = admin_client.get(f"/admin/records/session/{told.id}/change/")
    text = response.content.decode()
    order = [line.item_id for _, line in response.context["lines"]]
    assert order.index("item_0") < order.index("answer")
    assert "prompt" in order
    for words in (
        "<bdi>It is noon</bdi><del", "> in Paris.</bdi></del>", "interrupted after 800 ms", "not transcribed",
        f'src="/sessions/{told.id}/recording.flac"', "250 ms", "240 ms", "rate_limit_exceeded",
        "Be brief.", "{&quot;zone&quot;: &quot;Paris&quot;}",
        "Input token details, audio tokens</bdi></th><td>10",
    ):  # fmt: skip
        assert words in text
    assert not any(mark in text for mark in ("<style", " style=", " onclick="))


def test_sessions_cannot_be_changed_in_the_admin(admin_client: Client, told: Session) -> None:
    address = f"/admin/records/session/{told.id}"
    assert admin_client.get("/admin/records/session/add/").status_code == 403
    assert admin_client.get(f"{address}/delete/").status_code == 403
    assert admin_client.post(f"{address}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(f"{address}/change/", {"end_reason": "forged"})
    admin_client.post("/admin/records/session/", {"action": "delete_selected", "_selected_action": told.id,
                                                  "post": "yes"})  # fmt: skip
    told.refresh_from_db()
    assert told.end_reason == "hung_up"


def test_an_unknown_session_leads_back_to_the_index(admin_client: Client) -> None:
    for name in (UUID(int=3), "nonsense"):
        assert admin_client.get(f"/admin/records/session/{name}/change/").status_code == 302


def test_staff_need_the_permission_to_read_sessions(client: Client, told: Session) -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    client.force_login(clerk)
    address = f"/admin/records/session/{told.id}/change/"
    assert client.get(address).status_code == 403
    assert client.get("/admin/records/session/").status_code == 403
    clerk.user_permissions.add(
        Permission.objects.get(codename="view_session", content_type__app_label="records")
    )
    assert client.get(address).status_code == 200


def test_strangers_words_are_inert(admin_client: Client, user: User) -> None:
    kept = session(user, HOSTILE, name=HOSTILE)
    ToolCall.objects.create(session=kept, call_id="c", name=HOSTILE, arguments=HOSTILE, output=HOSTILE)
    Response.objects.create(session=kept, response_id="r", status_details={"reason": HOSTILE},
                            usage={HOSTILE: 1})  # fmt: skip
    for address in ("/admin/records/session/", f"/admin/records/session/{kept.id}/change/",
                    "/admin/records/session/?q=%3Cscript%3Ealert"):  # fmt: skip
        text = admin_client.get(address).content.decode()
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text
        assert not set(text) & set("\u202e\u202c\x1b")


def test_deleting_an_assistant_keeps_its_sessions(admin_client: Client, user: User) -> None:
    assistant = Assistant.objects.get()
    kept = session(user, "hello", assistant=assistant)
    admin_client.post(f"/admin/records/assistant/{assistant.pk}/delete/", {"post": "yes"})
    kept.refresh_from_db()
    assert kept.assistant is None
    assert kept.assistant_name == "Ada's helper"
