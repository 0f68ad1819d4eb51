"""Runs the two relays in turn under the same load and compares them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from voiceapp.loadtest import figures
from voiceapp.loadtest.figures import Findings, Limit, Piece, Plan, Search, Verdict, describe, judge

MAX_SETTLE_S = 60.0
_BUTTON = re.compile(r'name="csrfmiddlewaretoken" value="([A-Za-z0-9]+)"')
"""What the page of a sign-in link has its button send along."""
_ROOT = Path(__file__).resolve().parents[2]

Say = Callable[[str], None]


class RunEnded(Exception):
    """Ends a run before its time; its text says why, and what was measured until then stands."""


@dataclass
class MeasuredProcess:
    """A process that takes part in the run."""

    name: str
    process: subprocess.Popen[str]

    def check(self) -> None:
        """Raise ``RunEnded`` where the process is gone."""
        code = self.process.poll()
        if code is not None:
            raise RunEnded(f"{self.name} ended by itself (exit code {code}).")

    def cpu_s(self) -> float:
        """Return the CPU seconds that the process and its threads have used."""
        self.check()
        # The clock of a process, by clock_getcpuclockid(3): /proc counts in steps of 10 ms only.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def rss_mb(self) -> float:
        """Return the resident memory in megabytes."""
        self.check()
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


@dataclass
class Relay(MeasuredProcess):
    """One relay under test."""

    url: str
    headers: dict[str, str]
    product: bool

    def settle(self) -> None:
        """Wait until the product has nothing to do any more: recordings are archived after their sessions."""
        if not self.product:
            return
        deadline = time.monotonic() + MAX_SETTLE_S
        while time.monotonic() < deadline:
            before = self.cpu_s()
            time.sleep(0.5)
            if self.cpu_s() - before <= 0.02:
                return


@dataclass
class Load:
    """The processes that make the load: the clients, and the service behind the relays."""

    clients: MeasuredProcess
    service: MeasuredProcess

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds that each has used."""
        return {each.name: each.cpu_s() for each in (self.clients, self.service)}

    def ask(self, relay: Relay, do: str, **more: Any) -> dict[str, Any]:
        """Let a relay's clients do something; return what they measured, or raise ``RunEnded``."""
        process = self.clients.process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"do": do, "relay": relay.name, **more}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RunEnded("The load's clients failed.")
        relay.check()
        answer: dict[str, Any] = json.loads(line)
        return answer


def measure(say: Say, plan: Plan) -> dict[str, Any]:
    """Compare the relays and return the figures; ``say`` is called with each step's outcome.

    Where something ends the run before its time, the figures are those that there are until then.
    """
    found = Findings()
    try:
        with ExitStack() as stack:
            load, service = stack.enter_context(running_load())
            bare = stack.enter_context(running_bare("bare", service))
            product = stack.enter_context(_running_product(service))
            run(say, plan, load, (bare, product), found)
    except RunEnded as ended:
        found.notes.append(str(ended))
        say(str(ended))
    return figures.compare(found, ("bare", "voiceapp"), plan)


def run(say: Say, plan: Plan, load: Load, relays: tuple[Relay, Relay], found: Findings) -> None:
    """Load the bare relay and the product; write into ``found`` what is found, as it is found."""
    for relay in relays:
        load.ask(relay, "open", url=relay.url, headers=relay.headers, product=relay.product)
    bench = Bench(say, plan, load, found)
    kept_up, carried = (min(sizes) for sizes in zip(*[bench.first(relay) for relay in relays], strict=True))
    if kept_up < plan.sessions:
        found.notes.append(f"Compared at {kept_up or plan.smallest} sessions instead of {plan.sessions}.")
    bench.steady(relays, kept_up or plan.smallest)
    if not plan.search:
        return
    if not carried:
        found.notes.append(f"No load was carried within {plan.limit_ms:g} ms, so no largest was looked for.")
    elif not _own_cores():
        found.notes.append("The load shares the only core with the relay, so no largest load was looked for.")
    else:
        bench.search(relays, carried)


@dataclass
class Bench:
    """Lays loads on relays and notes what becomes of them."""

    say: Say
    plan: Plan
    load: Load
    found: Findings

    def first(self, relay: Relay) -> tuple[int, int]:
        """Raise the load from the smallest on, up to the steady comparison's.

        Return the largest that the relay kept up with, and the largest that it carried; 0 where none was.
        """
        before_mb = relay.rss_mb()
        kept_up = carried = 0
        for size in figures.first_loads(self.plan):
            piece = self._attempt(relay, size)
            if judge(piece, self.plan) is Verdict.CARRIED:
                carried = size
            if not figures.keeps_up(piece, self.plan):
                break
            kept_up = size
            if relay.product:
                self.found.mb_per_session = (relay.rss_mb() - before_mb) / size
        if carried < piece.sessions:
            self.found.notes.append(describe(relay.name, piece, self.plan))
        return kept_up, carried

    def steady(self, relays: tuple[Relay, Relay], sessions: int) -> None:
        """Load the relays in turn and in short pieces, so that the machine's moods meet both alike."""
        self.found.sessions = sessions
        for relay in relays:
            self._resize(relay, sessions)
            self.load.ask(relay, "talk", seconds=2 * self.plan.piece_s, counting=False)
        for turn in range(self.plan.rounds * self.plan.pieces):
            pieces = {}
            for relay in relays if turn % 2 == 0 else relays[::-1]:
                pieces[relay.name] = piece = self._piece(relay, sessions)
                self._say_steady(relay, piece)
            bare, product = (pieces[relay.name] for relay in relays)
            self.found.pairs.append((bare, product))
        for relay in relays:
            self.load.ask(relay, "leave")
            relay.settle()

    def search(self, relays: tuple[Relay, Relay], start: int) -> None:
        """Look for the most sessions that each relay carries, in alternating order."""
        for turn in range(self.plan.rounds):
            limits: dict[str, Limit] = {}
            for relay in relays if turn % 2 == 0 else relays[::-1]:
                limits[relay.name] = limit = self._search(relay, start)
                words = "carries" if limit.found else "carries at least"
                self.say(f"{relay.name}: {words} {limit.sessions} sessions")
            bare, product = (limits[relay.name] for relay in relays)
            self.found.limits.append((bare, product))

    def _search(self, relay: Relay, start: int) -> Limit:
        search = Search(start, self.plan)
        while (size := search.next_size()) is not None:
            piece = self._attempt(relay, size)
            verdict = judge(piece, self.plan)
            search.take(size, verdict)
            if verdict in (Verdict.LOAD_FULL, Verdict.HELD_UP):
                self.found.notes.append(describe(relay.name, piece, self.plan))
        self.load.ask(relay, "leave")
        relay.settle()
        return search.limit()

    def _attempt(self, relay: Relay, size: int) -> Piece:
        """Lay a load on a relay, again where it is not carried; return what was measured last."""
        piece = self._try(relay, size)
        for _ in range(self.plan.attempts - 1):
            if judge(piece, self.plan) is Verdict.CARRIED:
                break
            piece = self._try(relay, size)
        return piece

    def _try(self, relay: Relay, size: int) -> Piece:
        self._resize(relay, size)
        self.load.ask(relay, "talk", seconds=self.plan.settle_s, counting=False)
        piece = self._piece(relay, size)
        self.say("  " + describe(relay.name, piece, self.plan))
        return piece

    def _resize(self, relay: Relay, size: int) -> None:
        if self.load.ask(relay, "resize", size=size)["left"]:
            relay.settle()

    def _piece(self, relay: Relay, sessions: int) -> Piece:
        load_s, relay_s, start = self.load.cpu_s(), relay.cpu_s(), time.monotonic()
        seconds = self.plan.piece_s
        answer = self.load.ask(relay, "talk", seconds=seconds, counting=True)
        wall_s = time.monotonic() - start
        return Piece(
            sessions=sessions,
            seconds=seconds,
            wall_s=wall_s,
            relay_cpu_s=relay.cpu_s() - relay_s,
            load_cpu_s={name: cpu_s - load_s[name] for name, cpu_s in self.load.cpu_s().items()},
            **answer,
        )

    def _say_steady(self, relay: Relay, piece: Piece) -> None:
        words = describe(relay.name, piece, self.plan)
        self.say(f"{words} {piece.cpu_us_per_frame:.1f} µs CPU per frame." if piece.frames else words)


# -- processes ------------------------------------------------------------------------------------------


def _own_cores() -> bool:
    """Return whether the load and the relay each have a core."""
    return len(os.sched_getaffinity(0)) >= 2


def _pinned(cpu: int) -> Callable[[], None] | None:
    """Give the relay one core and the load another, where there are two."""
    if not _own_cores():
        return None
    cores = sorted(os.sched_getaffinity(0))
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
        for pipe in (process.stdin, process.stdout):
            # What a process that is gone was still to read is of no use.
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


def _module(name: str, *more: str, cpu: int) -> Any:
    return _running([sys.executable, "-m", name, *more], cpu=cpu)


def _first_line(name: str, process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise RunEnded(f"{name} did not start.")
    return line


@contextmanager
def running_load() -> Iterator[tuple[Load, str]]:
    """Run the processes that make the load; yield them and the service's address."""
    with (
        _module("voiceapp.loadtest.service", cpu=1) as service,
        _module("voiceapp.loadtest.clients", cpu=1) as clients,
    ):
        address = f"ws://127.0.0.1:{_first_line('service', service)}"
        yield Load(MeasuredProcess("clients", clients), MeasuredProcess("service", service)), address


@contextmanager
def running_bare(name: str, service: str) -> Iterator[Relay]:
    """Run a bare relay before a service."""
    with _module("voiceapp.loadtest.bare", f"{service}/", cpu=0) as process:
        yield Relay(name, process, f"ws://127.0.0.1:{_first_line(name, process)}/", {}, product=False)


@contextmanager
def _running_product(service: str) -> Iterator[Relay]:
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "DJANGO_SETTINGS_MODULE": "voiceapp.settings",
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
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
            try:
                with opener.open(link, timeout=10) as page:
                    button = _BUTTON.search(page.read().decode())
                pressed = urlencode({"csrfmiddlewaretoken": button[1] if button else ""}).encode()
                opener.open(link, pressed, timeout=10).close()
            except OSError as error:
                raise RunEnded(f"voiceapp could not be signed in to: {error}") from error
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
    raise RunEnded("voiceapp did not start.")
