"""The server of ``up``: Uvicorn on a socket that is known to be free, and a note of where it listens."""

from __future__ import annotations

import errno
import gc
import ipaddress
import socket
import sys
from collections.abc import Callable
from typing import Final

import uvicorn
from django.conf import settings
from django.core.management import CommandError

from voiceapp.datafolder.server_note import (
    remove_server_file,
    write_server_file,
)
from voiceapp.serving.http_protocol import HttpProtocol
from voiceapp.serving.socket_protocol import SocketProtocol
from voiceapp.signals import server_stopping

_GRACE_S: Final = 20
MAX_MESSAGE_BYTES: Final = 24 * 1024 * 1024
SWITCH_S: Final = 0.0005
GC_THRESHOLDS: Final = (20_000, 20, 20)


class Server(uvicorn.Server):
    """Serves ``voiceapp.asgi``; calls ``ready`` when the socket listens and the app has started."""

    def __init__(self, url: str, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                "voiceapp.asgi:application",
                loop="asyncio" if sys.platform == "win32" else "uvloop",
                http=HttpProtocol,
                ws=SocketProtocol,
                # Uvicorn closes a socket at a longer message; the engine takes 15 MiB of audio in base64.
                ws_max_size=MAX_MESSAGE_BYTES,
                # Audio does not compress; trying costs a third of the CPU.
                ws_per_message_deflate=False,
                lifespan="on",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        self._url = url
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then tell."""
        # Records are written by threads; audio must not wait the usual 5 ms for each of their turns.
        sys.setswitchinterval(SWITCH_S)
        # What is loaded by now stays: the collector need not walk it again and again while people talk.
        gc.collect()
        gc.freeze()
        # Frames make garbage that reference counts free; cycles are few and may wait.
        gc.set_threshold(*GC_THRESHOLDS)
        await super().startup(sockets)
        if self.started and not self.should_exit:
            write_server_file(settings.VOICE.data_dir, self._url)
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Remove the note first: whoever reads it would find nobody. Then let live sessions say goodbye.

        Uvicorn would close their sockets before the application is told that it stops.
        """
        remove_server_file(settings.VOICE.data_dir)
        await server_stopping.asend(type(self))
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ``CommandError`` with a sentence that says what to do."""
    if not 0 <= port <= 65_535:
        raise CommandError(f"{port} is not a port: choose one from 0 to 65535.")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except (socket.gaierror, UnicodeError):
        raise CommandError(f"{host} is not an address of this machine.") from None
    except OSError as error:
        raise CommandError(_why(error, host, port)) from None


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is taken by another program. Choose another: --port {port + 1}"
    if error.errno == errno.EACCES:
        return f"This user may not listen on port {port}. Choose one above 1023: --port 8000"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine."
    return f"Cannot listen on port {port} of {host}: {error.strerror}."


def address_for_people(listener: socket.socket, *, https: bool) -> str:
    """Return the URL at which a browser on this machine finds ``listener``."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1"
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if https else 'http'}://{name}:{port}"


def allow_many_files() -> None:
    """Raise the limit of open files: a session needs two sockets and two journals."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
