"""What a conversation asks for: messages for the page, as they are sent."""

from __future__ import annotations

import json

from voiceapp.conversation.actions import SendBrowser, notice


def test_an_event_of_the_service_goes_to_the_page_as_it_came() -> None:
    assert SendBrowser('{"type":"x" }').text == '{"type":"x" }'


def test_a_notice_is_a_sentence_with_a_code() -> None:
    fields = json.loads(notice("approval_timed_out", "Nobody answered.", "warning").text)
    assert fields == {
        "type": "notice", "code": "approval_timed_out", "message": "Nobody answered.", "level": "warning"
    }  # fmt: skip
