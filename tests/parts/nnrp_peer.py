"""The two ends of an ``/nnrp`` connection joined without a socket."""

from __future__ import annotations

from typing import Any

from voiceapp.nnrp import layouts, profile, wire
from voiceapp.nnrp.connection import ServerConnection
from voiceapp.nnrp.data_layouts import ResultPush
from voiceapp.nnrp.layouts import ErrorCode, Scope
from voiceapp.nnrp.operations import Operation, SendPacket, Start, Stop
from voiceapp.nnrp.wire import MessageType

Packets = list[wire.Packet]


class Peer:
    """A client's view of a server connection: writes packets, reads the answers."""

    def __init__(self, *, ready: bool = True) -> None:
        self.server = ServerConnection()
        self.started: list[Operation] = []
        self.stopped: list[Operation] = []
        self.others: list[Any] = []
        if ready:
            (ack,) = self.send(MessageType.CLIENT_HELLO, layouts.ClientHello())
            assert ack.type is MessageType.SERVER_HELLO_ACK

    def take(self, actions: list[Any]) -> Packets:
        packets = []
        for action in actions:
            match action:
                case SendPacket(data=data):
                    packets.append(wire.decode(data))
                case Start(operation=operation):
                    self.started.append(operation)
                case Stop(operation=operation):
                    self.stopped.append(operation)
                case _:
                    self.others.append(action)
        return packets

    def send(self, kind: MessageType, metadata: Any = None, payload: bytes = b"", **ids: int) -> Packets:
        return self.take(self.server.receive(wire.encode(kind, metadata, payload, **ids)))

    def open(self, **fields: int) -> int:
        (ack,) = self.send(MessageType.SESSION_OPEN, layouts.SessionOpen(**fields))
        assert isinstance(ack.metadata, layouts.SessionOpenAck)
        assert ack.metadata.session_status == layouts.SessionStatus.OPENED
        assert ack.header.session_id == ack.metadata.session_id
        return ack.metadata.session_id

    def submit(self, session_id: int, operation_id: int, frame_id: int, **changes: Any) -> Packets:
        metadata, payload = profile.write_submit(operation_id, envelope(**changes))
        return self.send(
            MessageType.FRAME_SUBMIT, metadata, payload, session_id=session_id, frame_id=frame_id
        )


def error_of(packet: wire.Packet) -> tuple[ErrorCode, Scope, bool]:
    assert isinstance(packet.metadata, layouts.ErrorPacket)
    assert packet.body
    return (
        ErrorCode(packet.metadata.error_code),
        Scope(packet.metadata.error_scope),
        bool(packet.metadata.fatal),
    )


def terminal_of(packet: wire.Packet) -> dict[str, Any]:
    assert isinstance(packet.metadata, ResultPush)
    event = profile.read_result(packet.metadata, packet.body)
    assert event is not None
    return event


def envelope(**changes: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    fields = {"schema_version": "openai-compatible/1", "operation": "chat.completions.create", "body": body}
    return {**fields, **changes}
