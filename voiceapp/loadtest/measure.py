"""Runs the two relays in turn under the same load and compares them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

LIMIT_MS = 10.0
"""A relay is full when the slowest percent of frames takes longer than this there and back."""
STEP_S = 3.0
PIECES = 3
"""Short pieces in each round of the steady comparison."""
SETTLE_S = 1.0
GROWTH = 1.12
MAX_SETTLE_S = 60.0
MAX_SESSIONS = 1500
"""Sessions at the most, so that a run is bounded whatever the machine."""

_TICKS = os.sysconf("SC_CLK_TCK")
_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Relay:
    """One relay under test."""

    name: str
    process: subprocess.Popen[str]
    url: str
    headers: dict[str, str]
    product: bool

    def cpu_s(self) -> float:
        """Return the CPU seconds that the process and its threads have used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def settle(self) -> None:
        """Wait until the process has nothing to do any more: recordings are archived after their sessions."""
        deadline = time.monotonic() + MAX_SETTLE_S
        while time.monotonic() < deadline:
            before = self.cpu_s()
            time.sleep(0.5)
            if self.cpu_s() - before <= 0.02:
                return

    def rss_mb(self) -> float:
        """Return the resident memory in megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Crowds:
    """The process of the load's pages."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, relay: Relay, do: str, **more: Any) -> dict[str, Any]:
        """Let the pages do something and return what they measured."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "relay": relay.name, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the load's pages failed")
        answer: dict[str, Any] = json.loads(line)
        return answer


def measure(say: Callable[[str], None], *, sessions: int, rounds: int, search: bool) -> dict[str, Any]:
    """Compare the relays and return the figures; ``say`` is told how far it is.

    ``sessions`` is the load at which CPU, delay and memory are compared; ``search`` also looks for the
    largest load that each can carry.
    """
    with ExitStack() as stack:
        service = stack.enter_context(_module("voiceapp.loadtest.service", cpu=1))
        port = _line(service)
        crowds = Crowds(stack.enter_context(_module("voiceapp.loadtest.clients", cpu=1)))
        bare = stack.enter_context(_bare(f"ws://127.0.0.1:{port}/"))
        product = stack.enter_context(_product(f"ws://127.0.0.1:{port}"))
        relays = [bare, product]
        for relay in relays:
            crowds.ask(relay, "open", url=relay.url, headers=relay.headers, product=relay.product)
        steady = _steady(say, crowds, relays, sessions, rounds)
        full = _full(say, crowds, relays, sessions, rounds) if search else {}
    return _compare(steady, full, sessions)


def _steady(
    say: Callable[[str], None], crowds: Crowds, relays: list[Relay], sessions: int, rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Load the relays in turn and in short pieces, so that the machine's moods meet both alike."""
    found: dict[str, dict[str, list[float]]] = {
        relay.name: {"cpu_us": [], "p50_ms": [], "p99_ms": [], "mb": []} for relay in relays
    }
    for relay in relays:
        before_mb = relay.rss_mb()
        crowds.ask(relay, "grow", size=sessions)
        crowds.ask(relay, "talk", seconds=2 * STEP_S, counting=False)
        found[relay.name]["mb"].append((relay.rss_mb() - before_mb) / sessions)
    for turn in range(rounds * PIECES):
        for relay in relays if turn % 2 == 0 else relays[::-1]:
            before = relay.cpu_s()
            result = crowds.ask(relay, "talk", seconds=STEP_S, counting=True)
            figures = found[relay.name]
            figures["cpu_us"].append(1e6 * (relay.cpu_s() - before) / result["frames"])
            figures["p50_ms"].append(result["p50_ms"])
            figures["p99_ms"].append(result["p99_ms"])
            say(
                f"{relay.name}: {sessions} sessions, {figures['cpu_us'][-1]:.1f} µs CPU per frame, "
                f"p99 {result['p99_ms']:.2f} ms"
            )
    for relay in relays:
        crowds.ask(relay, "leave")
        relay.settle()
    return found


def _full(
    say: Callable[[str], None], crowds: Crowds, relays: list[Relay], sessions: int, rounds: int
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {relay.name: [] for relay in relays}
    for turn in range(rounds):
        for relay in relays if turn % 2 == 0 else relays[::-1]:
            carried = _search(say, crowds, relay, sessions)
            found[relay.name].append(carried)
            say(f"{relay.name}: carries {carried} sessions")
    return found


def _search(say: Callable[[str], None], crowds: Crowds, relay: Relay, start: int) -> int:
    """Add sessions until the relay is full at two steps in a row; return what it last carried."""
    size, carried, failed = float(start), 0, 0
    while size <= MAX_SESSIONS and failed < 2:
        crowds.ask(relay, "grow", size=int(size))
        crowds.ask(relay, "talk", seconds=SETTLE_S, counting=False)
        result = crowds.ask(relay, "talk", seconds=STEP_S, counting=True)
        expected = int(size) * STEP_S / 0.02
        if (
            result["p99_ms"] is not None
            and result["p99_ms"] < LIMIT_MS
            and result["frames"] > 0.97 * expected
        ):
            carried, failed = int(size), 0
            size = size * GROWTH + 1
        else:
            failed += 1
        say(f"  {relay.name} at {int(size)}: p99 {result['p99_ms']}")
    crowds.ask(relay, "leave")
    relay.settle()
    return carried


def _compare(
    steady: dict[str, dict[str, list[float]]], full: dict[str, list[int]], sessions: int
) -> dict[str, Any]:
    bare, product = steady["bare"], steady["voiceapp"]
    ratios = [ours / theirs for ours, theirs in zip(product["cpu_us"], bare["cpu_us"], strict=True)]
    result: dict[str, Any] = {
        "sessions": sessions,
        "ratio_cpu_per_frame": round(median(ratios), 3),
        "cpu_us_per_frame": {name: round(median(steady[name]["cpu_us"]), 1) for name in steady},
        "p99_ms": {name: round(median(steady[name]["p99_ms"]), 2) for name in steady},
        "added_p99_ms": round(median(product["p99_ms"]) - median(bare["p99_ms"]), 2),
        "mb_per_session": round(max(product["mb"]), 2),
    }
    if full:
        pairs = zip(full["voiceapp"], full["bare"], strict=True)
        result["sessions_per_core"] = {name: int(median(full[name])) for name in full}
        result["ratio_sessions_per_core"] = round(median(ours / theirs for ours, theirs in pairs), 3)
    return result


# -- processes ------------------------------------------------------------------------------------------


def _pinned(cpu: int) -> Callable[[], None] | None:
    """Give the relay one core and the load another, where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return None
    return lambda: os.sched_setaffinity(0, {cores[cpu]})


@contextmanager
def _running(
    command: list[str], *, cpu: int, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(  # noqa: S603 - our own modules
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
        env={**os.environ, **(env or {})},
        preexec_fn=_pinned(cpu),
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _module(name: str, *more: str, cpu: int) -> Any:
    return _running([sys.executable, "-m", name, *more], cpu=cpu)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def _bare(service: str) -> Iterator[Relay]:
    with _module("voiceapp.loadtest.bare", service, cpu=0) as process:
        yield Relay("bare", process, f"ws://127.0.0.1:{_line(process)}/", {}, product=False)


@contextmanager
def _product(service: str) -> Iterator[Relay]:
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "VOICEAPP_DATA_DIR": folder,
            "AZURE_OPENAI_ENDPOINT": service,
            "AZURE_OPENAI_API_KEY": "load",
            "AZURE_OPENAI_DEPLOYMENT": "load",
            "AZURE_OPENAI_TRANSCRIPTION_DEPLOYMENT": "load-transcription",
            "VOICEAPP_MAX_SESSIONS_PER_USER": "10000",
            "VOICEAPP_MAX_SESSIONS": "10000",
            "VOICEAPP_RECORD_AUDIO": "1",
            "DATABASE_URL": "",
        }
        command = [sys.executable, "manage.py", "up", "--port", "0"]
        with _running(command, cpu=0, env=env) as process:
            link = _ready_link(process)
            address = urlsplit(link)
            cookies = CookieJar()
            urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies)).open(link, timeout=10)
            headers = {
                "Cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies),
                "Origin": f"http://{address.netloc}",
            }
            time.sleep(1)
            yield Relay("voiceapp", process, f"ws://{address.netloc}/ws/voice/", headers, product=True)


def _ready_link(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Ready: "):
            return line.removeprefix("Ready: ").strip()
    raise RuntimeError("the server did not start")
