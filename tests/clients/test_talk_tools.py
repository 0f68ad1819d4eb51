"""``manage.py talk`` and tools that ask first: nobody is there to be asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.browser.scripted import ScriptedServer
from tests.parts.waits import PATIENCE_S
from voiceapp.clients.talk import Talk
from voiceapp.protocol.page import SessionStart

READY = {
    "type": "session.ready", "session_id": "3f0c2d44-0000-4000-8000-000000000001",
    "assistant": {"slug": "guide", "name": "Guide"}, "turn_detection": {"type": "server_vad"},
    "audio": {"input": {"type": "audio/pcm", "rate": 24000}, "output": {"type": "audio/pcm", "rate": 24000}},
}  # fmt: skip
ASKED = {
    "type": "approval.requested", "approval_request_id": "q1", "server_label": "shop", "name": "buy",
    "arguments": '{"n":1}', "call_id": "c1", "timeout_ms": 60_000,
}  # fmt: skip


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_call_is_answered_by_the_option_and_said_aloud(allowed: bool) -> None:
    lines: list[str] = []
    talk = Talk(lines.append, allow_tools=allowed)

    def serve(server: ScriptedServer) -> dict[str, Any]:
        link = server.link()
        link.send(READY)
        link.send(ASKED)
        found = link.wait_text(lambda text: text.get("item", {}).get("type") == "mcp_approval_response")
        link.send({"type": "session.ended", "reason": "test", "code": "test", "message": "Over."})
        link.close(4000)
        return found

    async with asyncio.timeout(PATIENCE_S):
        with ScriptedServer() as server:
            _, answered = await asyncio.gather(
                talk.run(server.url, "", file=None, texts=["Buy one."], start=SessionStart()),
                asyncio.to_thread(serve, server),
            )
    assert answered["item"] == {
        "type": "mcp_approval_response", "approval_request_id": "q1", "approve": allowed,
    }  # fmt: skip
    (said,) = [line for line in lines if "buy of shop" in line]
    assert '{"n":1}' in said
    assert ("refused" in said) is not allowed
