"""Notes in the admin: read and deleted, not written."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from voiceapp.records.models import Note

pytestmark = pytest.mark.django_db(transaction=True)


def test_notes_are_read_and_deleted_but_not_written_in_the_admin(admin_client: Client, user: User) -> None:
    note = Note.objects.create(user=user, text="<script>alert(1)</script> \u202e")
    for page in ("", f"{note.pk}/change/"):
        shown = admin_client.get(f"/admin/records/note/{page}").content.decode()
        assert "&lt;script&gt;" in shown
        assert "\u202e" not in shown
    assert admin_client.get("/admin/records/note/add/").status_code == 403
    assert admin_client.post(f"/admin/records/note/{note.pk}/change/", {"text": "x"}).status_code == 403
    admin_client.post(f"/admin/records/note/{note.pk}/delete/", {"post": "yes"})
    assert not Note.objects.exists()
