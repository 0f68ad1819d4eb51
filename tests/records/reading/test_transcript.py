"""Words that nobody may have spoken are marked wherever a kept conversation is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.records.models import Item, Session
from voiceapp.records.reading import transcript


@pytest.mark.django_db(transaction=True)
def test_doubtful_words_are_marked_for_the_user_and_the_administrator(
    client: Client, user: User, admin_client: Client
) -> None:
    now = timezone.now()
    session = Session.objects.create(
        user=user,
        configuration={"name": "Ada"},
        upstream="azure-ga",
        process="x",
        started_at=now,
        ended_at=now,
    )
    for number, status in enumerate(("doubtful", "completed")):
        Item.objects.create(
            session=session, item_id=f"i{number}", type="message", role="user", modality="audio",
            generated_text="Thank you for watching.", transcript_status=status,
        )  # fmt: skip
    client.force_login(user)
    own = client.get(f"/sessions/{session.id}/").content.decode()
    others = admin_client.get(f"/admin/records/session/{session.id}/change/").content.decode()
    for page in (own, others):
        assert page.count("Thank you for watching.") >= 2
        assert page.count("perhaps nothing was said") == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_MEMBERS = st.sampled_from(("tools", "name", "arguments", "server_label", "approve", "output"))
_KINDS = ("message", "function_call", "function_call_output", "mcp_call", "mcp_list_tools",
          "mcp_approval_request", "mcp_approval_response", "of another time")  # fmt: skip


@given(st.sampled_from(_KINDS), _JSON | st.dictionaries(_MEMBERS, _JSON))
def test_no_record_breaks_the_pages_that_show_it(kind: str, raw: Any) -> None:
    """Whatever a service sent, and was kept as it came, can be read."""
    item = Item(item_id="i", type=kind, raw=raw, transcript_status="completed")
    items = SimpleNamespace(order_by=lambda _: [item])
    kept: Any = SimpleNamespace(ended_at=None, assistant_name="", items=items)
    [line] = transcript.lines(kept, system=True)
    assert isinstance(line.text, str)
    assert line.kind == kind
