"""No record can break a page: whatever a service sent, or an old version kept, can be looked at."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from voiceapp.records.models import Evaluation, Item, Response, Session, ToolCall

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "<script>", "\u202e", "{{ x }}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["id", "type", "content", "tools", "name", "output", "error", "code", "server_label",
                         "total_tokens", "input_token_details", "audio_tokens", "criterion", "score"]),
        inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
PRESENT = JSON.filter(lambda value: value is not None)
KINDS = st.sampled_from(["message", "function_call", "function_call_output", "mcp_list_tools", "mcp_call",
                         "mcp_approval_request", "mcp_approval_response", "odd", ""])  # fmt: skip
ROLES = st.sampled_from(["user", "assistant", "system", "odd", ""])
TEXT = st.sampled_from(["", "Good day.", "{", '{"a": 1}', "<b>", "\u2028", "x" * 50])
NUMBERS = count()


def odd_session(user: User, data: st.DataObject) -> Session:
    """Keep a session whose every member that came from elsewhere is as odd as it can be."""
    now = timezone.now()
    kept = Session.objects.create(
        user=user, configuration=data.draw(PRESENT), upstream="odd", process="x", started_at=now,
        ended_at=now,
        end_reason="odd", duration_ms=data.draw(st.sampled_from([0, 2**40])), item_count=1,
        heading=data.draw(TEXT)[:100],
    )  # fmt: skip
    for _ in range(6):
        number = next(NUMBERS)
        Item.objects.create(
            session=kept, item_id=f"i{number}", previous_item_id=None,
            type=data.draw(KINDS), role=data.draw(ROLES), raw=data.draw(PRESENT),
            generated_text=data.draw(TEXT),
            heard_text=data.draw(st.none() | TEXT), cut_ms=data.draw(st.sampled_from([None, 0, -5, 2**40])),
            started_ms=data.draw(st.sampled_from([0, -1, 2**40])), transcript_status="odd",
        )  # fmt: skip
        Response.objects.create(
            session=kept, response_id=f"r{number}", status=data.draw(ROLES), usage=data.draw(JSON),
            status_details=data.draw(JSON), metadata=data.draw(JSON), latency_ms=data.draw(
                st.sampled_from([None, -1, 2**40])),
        )  # fmt: skip
        ToolCall.objects.create(
            session=kept, call_id=f"c{number}", name="odd", arguments=data.draw(TEXT), output=data.draw(TEXT),
            status="odd", started_ms=5, ended_ms=data.draw(st.sampled_from([0, 2**40])),
        )  # fmt: skip
    Evaluation.objects.create(session=kept, asked_by=user, scores=data.draw(PRESENT), overall=1, comment="x")
    return kept


@pytest.mark.django_db(transaction=True)
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_every_page_shows_every_record(
    client: Client, admin_client: Client, user: User, data: st.DataObject
) -> None:
    kept = odd_session(user, data)
    client.force_login(user)
    pages: list[tuple[Any, str]] = [
        (client, "/sessions/"), (client, f"/sessions/{kept.id}/"), (client, "/"),
        (admin_client, "/admin/records/session/"),
        (admin_client, f"/admin/records/session/{kept.id}/change/"),
    ]  # fmt: skip
    for who, address in pages:
        answer = who.get(address)
        assert answer.status_code == 200, address
        assert b"<script>" not in answer.content.replace(b"<script type", b"").replace(b"<script src", b"")
    kept.delete()
