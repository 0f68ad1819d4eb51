"""The admin's form of an assistant takes what a service will take."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.parts.admin_pages import FORM
from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.records.models import Assistant


def test_an_assistant_is_made_in_the_admin(admin_client: Client) -> None:
    assert admin_client.post("/admin/records/assistant/add/", FORM).status_code == 302
    config = Assistant.objects.get(slug="phone").config()
    assert isinstance(config, AssistantConfig)
    assert config.input_format.value == "audio/pcmu"
    assert config.turn_detection == {"type": "server_vad", "silence_duration_ms": 400}
    assert config.transcription == {"language": "en"}
    assert admin_client.get("/admin/records/assistant/").status_code == 200


def test_empty_fields_mean_push_to_talk_and_no_captions(admin_client: Client) -> None:
    admin_client.post("/admin/records/assistant/add/", {**FORM, "turn_detection": "", "transcription": ""})
    config = Assistant.objects.get(slug="phone").config()
    assert config.turn_detection is None
    assert config.transcription is None
    admin_client.post("/admin/records/assistant/add/", {**FORM, "slug": "two", "transcription": "{}"})
    assert Assistant.objects.get(slug="two").config().transcription == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("turn_detection", "not json"),
        ("turn_detection", "{}"),
        ("turn_detection", "[]"),
        ("turn_detection", '"server_vad"'),
        ("turn_detection", '{"type": "none"}'),
        ("turn_detection", '{"type": "server_vad", "threshold": 2}'),
        ("turn_detection", '{"type": "server_vad", "silence_duration_ms": "long"}'),
        ("turn_detection", '{"type": "server_vad", "idle_timeout_ms": 10}'),
        ("turn_detection", '{"type": "server_vad", "eagerness": "low"}'),
        ("turn_detection", '{"type": "semantic_vad", "eagerness": "wild"}'),
        ("turn_detection", "9" * 5000),
        ("turn_detection", "[" * 100_000),
        ("transcription", '{"language": "\\ud800"}'),
        ("tools", '["\\ud800"]'),
        ("tools", "[" * 100_000),
        ("transcription", '{"modell": "x"}'),
        ("transcription", "[1]"),
        ("voices", '["alloy", "alloy"]'),
        ("voices", '[""]'),
        ("voices", '"alloy"'),
        ("voices", "[1]"),
        ("input_format", "audio/mp3"),
        ("max_output_tokens", "0"),
        ("max_output_tokens", "5000"),
        ("max_tool_rounds", "0"),
        ("max_tool_rounds", "65"),
        ("max_tool_rounds", "many"),
        ("slug", "not a slug"),
        ("slug", "assistant"),
    ],
)
def test_what_a_service_would_refuse_is_refused_in_the_form(
    admin_client: Client, field: str, value: str
) -> None:
    response = admin_client.post("/admin/records/assistant/add/", {**FORM, field: value})
    assert response.status_code == 200
    assert list(response.context["adminform"].form.errors) == [field]
    assert Assistant.objects.count() == 1


def test_the_seeded_assistants_form_can_be_saved_as_it_is(admin_client: Client) -> None:
    assistant = Assistant.objects.get()
    address = f"/admin/records/assistant/{assistant.pk}/change/"
    form = admin_client.get(address).context["adminform"].form
    data = {name: form[name].value() for name in form.fields}
    response = admin_client.post(
        address, {name: "" if value is None else value for name, value in data.items()}
    )
    assert response.status_code == 302
    assert Assistant.objects.get().config() == assistant.config()
