"""A scripted Realtime service for load: it echoes every frame as an answer's audio and talks on the side.

Run as ``python -m voiceapp.loadtest.service``; it prints its port and serves until it is killed.
"""

from __future__ import annotations

import json
import sys
from itertools import count

import uvloop
from picows import WSFrame, WSListener, WSMsgType, WSTransport, WSUpgradeRequest, ws_create_server

TURN_FRAMES = 100
"""Every two seconds a turn ends: transcripts, items and a response, all of which are to be kept."""

_SESSION = {
    "type": "realtime",
    "id": "sess_load",
    "audio": {
        "input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": {"type": "server_vad"}},
        "output": {"format": {"type": "audio/pcm", "rate": 24000}},
    },
}
_ids = count(1)


class EchoSession(WSListener):
    """One connection of a relay."""

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Greet."""
        self.frames = 0
        self.item = ""
        self.response = ""
        self._say(transport, {"type": "session.created", "session": _SESSION})

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Echo audio; answer a configuration."""
        if frame.msg_type is not WSMsgType.TEXT:
            if frame.msg_type is WSMsgType.CLOSE:
                transport.send_close(frame.get_close_code(), None)
                transport.disconnect()
            return
        message = frame.get_payload_as_bytes()
        if message.startswith(b'{"type":"input_audio_buffer.append","audio":"'):
            if self.frames % TURN_FRAMES == 0:
                self._turn(transport)
            self.frames += 1
            transport.send(WSMsgType.TEXT, self.head + message[45:-2] + b'"}')
        elif b'"session.update"' in message:
            self._say(transport, {"type": "session.updated", "session": _SESSION})

    def _turn(self, transport: WSTransport) -> None:
        """End the answer that was going on, keep a user's turn, begin the next answer."""
        if self.item:
            item = self._message(self.item, "assistant", "output_audio", "All that I said in this answer.")
            self._say(transport, {"type": "conversation.item.done", "previous_item_id": None, "item": item})
            usage = {"total_tokens": 100, "input_tokens": 60, "output_tokens": 40}
            done = {"id": self.response, "status": "completed", "output": [item], "usage": usage}
            self._say(transport, {"type": "response.done", "response": done})
        user = f"item_{next(_ids)}"
        heard = self._message(user, "user", "input_audio", None)
        self._say(transport, {"type": "conversation.item.added", "previous_item_id": None, "item": heard})
        self._say(transport, {"type": "conversation.item.done", "previous_item_id": None, "item": heard})
        kind = "conversation.item.input_audio_transcription.completed"
        self._say(
            transport, {"type": kind, "item_id": user, "content_index": 0, "transcript": "What was said."}
        )
        self.item, self.response = f"item_{next(_ids)}", f"resp_{next(_ids)}"
        where = {"response_id": self.response, "item_id": self.item, "output_index": 0, "content_index": 0}
        self._say(
            transport,
            {"type": "response.created", "response": {"id": self.response, "status": "in_progress"}},
        )
        item = self._message(self.item, "assistant", "output_audio", None)
        self._say(
            transport,
            {"type": "conversation.item.added", "previous_item_id": user, "item": item | {"content": []}},
        )
        for word in ("All ", "that ", "I ", "said "):
            self._say(transport, {"type": "response.output_audio_transcript.delta", "delta": word, **where})
        delta = {"type": "response.output_audio.delta", "event_id": "event_audio", **where, "delta": ""}
        self.head = json.dumps(delta, separators=(",", ":")).encode()[:-2]

    @staticmethod
    def _message(item_id: str, role: str, kind: str, transcript: str | None) -> dict[str, object]:
        part = {"type": kind, "transcript": transcript}
        status = "completed" if role == "user" or transcript else "in_progress"
        return {"id": item_id, "type": "message", "role": role, "status": status, "content": [part]}

    @staticmethod
    def _say(transport: WSTransport, event: dict[str, object]) -> None:
        event = {"type": event["type"], "event_id": f"event_{next(_ids)}", **event}
        transport.send(WSMsgType.TEXT, json.dumps(event, separators=(",", ":")).encode())


async def main() -> None:
    """Serve on a free port of the loopback interface."""

    def listen(request: WSUpgradeRequest) -> WSListener:
        return EchoSession()

    server = await ws_create_server(listen, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
