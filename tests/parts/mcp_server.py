"""A real MCP server of the official package under Uvicorn, in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.parts.quick_server import QuickServer
from tests.parts.waits import PATIENCE_S

WAIT_S = PATIENCE_S


class ToolServer(QuickServer):
    """Serves a few tools; ``entered`` says that ``wait`` runs, which it does until ``release`` is set.

    While ``open`` is not set nothing is answered at all.
    """

    def __init__(self, *, token: str = "", redirect_to: str = "") -> None:
        self.entered, self.release = threading.Event(), threading.Event()
        self.open = threading.Event()
        self.open.set()
        self.requests: list[dict[str, str]] = []
        self._token, self._redirect_to = token, redirect_to
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._app: ASGIApp = self._server().streamable_http_app()
        config = uvicorn.Config(
            self._admit,
            lifespan="on",
            interface="asgi3",
            log_level="warning",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self.run, kwargs={"sockets": [self._socket]}, daemon=True)

    def _server(self) -> MCPServer | Server[Any]:
        server = MCPServer("shop")

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def order_status(order: int) -> str:
            """Tell the status of an order."""
            return f"Order {order} is on its way."

        @server.tool()
        def cancel_order(order: int) -> str:
            """Cancel an order."""
            raise ToolError("The order has left the house.")

        @server.tool()
        def essay() -> str:
            """Write an essay of great length."""
            return "word " * 20_000

        @server.tool()
        def wait() -> str:
            """Wait for somebody."""
            self.entered.set()
            self.release.wait(WAIT_S)
            return "Done waiting."

        return server

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append(headers)
        while not self.open.is_set():
            await asyncio.sleep(0.01)
        status, more = 0, []
        if self._redirect_to:
            status, more = 307, [(b"location", self._redirect_to.encode())]
        elif self._token and headers.get("authorization") != f"Bearer {self._token}":
            status = 401
        if not status:
            await self._app(scope, receive, send)
            return
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *more]}
        )
        await send({"type": "http.response.body", "body": b""})

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready.set()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(WAIT_S)
        return self

    def die(self) -> None:
        """End without waiting for anything that is open."""
        self.force_exit = True
        self.stop()

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.die()
        self._thread.join(WAIT_S)
        self._socket.close()


class OddServer(ToolServer):
    """Lists ``pages`` by the cursors that they name, and answers any call with ``content``."""

    def __init__(self, pages: dict[str, tuple[list[str], str | None]], *content: ContentBlock) -> None:
        self.pages, self.content = pages, content
        self.cursors: list[str] = []
        self.schemas: dict[str, dict[str, Any]] = {}
        super().__init__()

    def _server(self) -> Server[Any]:
        async def listed(_: Any, asked: PaginatedRequestParams | None) -> ListToolsResult:
            cursor = (asked.cursor if asked else None) or ""
            self.cursors.append(cursor)
            names, following = self.pages[cursor]
            tools = [
                Tool(
                    name=name,
                    description=f"of {cursor}",
                    input_schema=self.schemas.get(name, {"type": "object"}),
                )
                for name in names
            ]
            return ListToolsResult(tools=tools, next_cursor=following)

        async def called(_: Any, asked: CallToolRequestParams) -> CallToolResult:
            return CallToolResult(content=list(self.content))

        return Server("odd", on_list_tools=listed, on_call_tool=called)


@contextmanager
def tool_server(**options: Any) -> Iterator[ToolServer]:
    """Serve tools for as long as the context lasts."""
    with ToolServer(**options) as server:
        yield server
