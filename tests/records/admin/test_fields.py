"""Tools are ticked in the admin, and JSON is read as it was written."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from tests.parts.admin_pages import FORM, HOSTILE
from voiceapp.records.models import Assistant
from voiceapp.tools.registry import registry

pytestmark = pytest.mark.django_db(transaction=True)


def test_tools_are_ticked(admin_client: Client) -> None:
    add = "/admin/records/assistant/add/"
    shown = admin_client.get(add).content.decode()
    for name in registry.names():
        assert f'<input type="checkbox" name="tools" value="{name}"' in shown
    (calculate,) = registry.definitions(["calculate"])
    assert calculate["description"] in unescape(shown)
    admin_client.post(add, {**FORM, "tools": ["calculate", "current_time"]})
    phone = Assistant.objects.get(slug="phone")
    assert phone.tools == ["calculate", "current_time"]
    admin_client.post(f"/admin/records/assistant/{phone.pk}/change/", {**FORM, "tools": []})
    phone.refresh_from_db()
    assert phone.tools == []


def test_a_tool_that_is_gone_is_shown_and_refused_until_it_is_unticked(admin_client: Client) -> None:
    admin_client.post("/admin/records/assistant/add/", FORM)
    Assistant.objects.filter(slug="phone").update(tools=["calculate", HOSTILE])
    phone = Assistant.objects.get(slug="phone")
    address = f"/admin/records/assistant/{phone.pk}/change/"
    shown = admin_client.get(address)
    assert shown.content.decode().count("(there is no such tool)") == 1
    assert shown.context["adminform"].form["tools"].value() == ["calculate", HOSTILE]
    assert "<script>alert" not in shown.content.decode()
    refused = admin_client.post(address, {**FORM, "tools": ["calculate", "gone"]})
    (sentence,) = refused.context["adminform"].form.errors["tools"]
    assert sentence.startswith("There is no tool 'gone'. There are: ")
    assert "<bdi>gone</bdi> (there is no such tool)" in refused.content.decode()
    assert admin_client.post(address, {**FORM, "tools": ["calculate"]}).status_code == 302
    phone.refresh_from_db()
    assert phone.tools == ["calculate"]
