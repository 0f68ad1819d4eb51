"""API tokens in the admin."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from voiceapp.records.models import ApiToken
from voiceapp.records.store.tokens import digest_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_admin_shows_a_new_token_once(admin_client: Client) -> None:
    root = User.objects.get(username="root")
    fields = {
        "user": root.pk, "name": "phone", "enabled": "on", "requests_per_minute": 5,
        "concurrent_requests": 2, "tokens_per_day": 0,
        "usage-TOTAL_FORMS": 0, "usage-INITIAL_FORMS": 0,
    }  # fmt: skip
    page = admin_client.post("/admin/records/apitoken/add/", fields, follow=True).content.decode()
    found = re.search(r"va_[\w-]{43}", page)
    assert found is not None
    row = ApiToken.objects.get()
    assert row.digest == digest_of(found[0])
    assert row.requests_per_minute == 5
    for address in ("", f"{row.pk}/change/"):
        later = admin_client.get(f"/admin/records/apitoken/{address}").content.decode()
        assert "phone" in later
        assert found[0] not in later
    # A change of its limits leaves the token as it is.
    admin_client.post(f"/admin/records/apitoken/{row.pk}/change/", {**fields, "requests_per_minute": 9})
    row.refresh_from_db()
    assert (row.requests_per_minute, row.digest) == (9, digest_of(found[0]))
