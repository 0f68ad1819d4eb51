"""Words of a stranger, and the form of an assistant in the admin."""

from __future__ import annotations

HOSTILE = "<script>alert(1)</script>\u202etxet\u202c\x1b[31m =cmd|' /C calc'!A0"

FORM = {
    "name": "Phone", "slug": "phone", "enabled": "on", "position": "1", "instructions": "Be kind.",
    "voice": "", "tools": "", "max_output_tokens": "", "input_format": "audio/pcmu",
    "output_format": "audio/pcma", "turn_detection": '{"type": "server_vad", "silence_duration_ms": 400}',
    "transcription": '{"language": "en"}',
}  # fmt: skip
