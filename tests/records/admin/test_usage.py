"""What a session used, added up."""

from __future__ import annotations

import json

from voiceapp.records.admin.usage import totals


def test_usage_is_added_up() -> None:
    usages = [
        None,
        {"total_tokens": 3, "details": {"audio_tokens": 1}, "cached": True, "note": "x"},
        {"total_tokens": 4, "details": {"audio_tokens": 2, "text_tokens": 5}},
    ]
    assert totals(json.loads(json.dumps(usages))) == {
        "total tokens": 7, "details, audio tokens": 3, "details, text tokens": 5
    }  # fmt: skip
