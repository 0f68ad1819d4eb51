"""Words that nobody may have spoken are marked wherever a kept conversation is read."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from voiceapp.records.models import Item, Session

pytestmark = pytest.mark.django_db(transaction=True)


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
