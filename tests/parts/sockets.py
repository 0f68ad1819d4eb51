"""Channels' communicators, with the patience of these tests instead of a second."""

# ruff: noqa: ASYNC109 - Channels names it so.

from __future__ import annotations

from typing import Any

from channels.testing import WebsocketCommunicator

from tests.parts.waits import PATIENCE_S


class PatientSocket(WebsocketCommunicator):  # type: ignore[misc]
    """A socket of a consumer that runs in this event loop; see ``WebsocketCommunicator``."""

    async def connect(self, timeout: float = PATIENCE_S) -> Any:
        return await super().connect(timeout)

    async def receive_output(self, timeout: float = PATIENCE_S) -> Any:
        return await super().receive_output(timeout)

    async def receive_from(self, timeout: float = PATIENCE_S) -> Any:
        return await super().receive_from(timeout)

    async def receive_json_from(self, timeout: float = PATIENCE_S) -> Any:
        return await super().receive_json_from(timeout)

    async def disconnect(self, code: int = 1000, timeout: float = PATIENCE_S) -> None:
        await super().disconnect(code, timeout)

    async def wait(self, timeout: float = PATIENCE_S) -> None:
        await super().wait(timeout)
