"""What the page is told of answers that did not end well."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.conversation.answers.responses import response_notice


def failed(code: str, message: str) -> dict[str, Any]:
    details = {"type": "failed", "error": {"type": "server_error", "code": code, "message": message}}
    return {"id": "r1", "status": "failed", "status_details": details}


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        # Our own engine says what to check; asking again would help nobody.
        (
            "model_host_absent",
            "No model host is connected. Start one.",
            "No model host is connected. Start one.",
        ),
        (
            "text_engine_unreachable",
            "The chat endpoint cannot be reached.",
            "The chat endpoint cannot be reached.",
        ),
        ("chat_not_configured", "The settings name none.", "The settings name none."),
        # Others' words are theirs.
        ("server_error", "stack trace …", "The service could not answer (server_error). Ask again."),
        ("insufficient_quota", "…", "The service's quota is used up."),
        ("model_host_absent", "", "The service could not answer (model_host_absent). Ask again."),
    ],
)
def test_a_failed_answer_is_a_sentence_that_helps(code: str, message: str, told: str) -> None:
    assert response_notice(failed(code, message)) == ("response_failed", told, "error")
