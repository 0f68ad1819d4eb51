"""An unreliable network before the real server: a Realtime service, and proxies, on a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tests.parts.proxy import Proxy, proxy
from tests.parts.scripted import Service, service
from tests.parts.waits import PATIENCE_S

T = TypeVar("T")


class Network:
    """An event loop on a thread of its own, with a Realtime service, and proxies."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._stack = AsyncExitStack()
        self.service: Service = self.run(self._stack.enter_async_context(service()))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def proxy(self, url: str, **options: Any) -> Proxy:
        """Put a proxy before an address."""
        address = urlsplit(url)
        assert address.hostname
        assert address.port
        return self.run(self._stack.enter_async_context(proxy(address.hostname, address.port, **options)))

    def call(self, do: Any) -> None:
        """Call something there."""

        async def called() -> None:
            do()

        self.run(called())

    def close(self) -> None:
        """End everything."""
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()
