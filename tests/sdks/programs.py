"""Clients that are programs of their own, and what each must be able to tell of its conversation."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 60
SECOND_OF_AUDIO = 48_000


@dataclass(frozen=True)
class Engine:
    """Where the engine listens, and its key."""

    host: str
    key: str

    def url(self, path: str, scheme: str = "ws") -> str:
        """Return an address on the engine's server."""
        return f"{scheme}://{self.host}{path}"


def hold_conversation(command: list[str], engine: Engine, speech: Path) -> dict[str, Any]:
    """Run a client's program and return what it tells: one JSON object on the last line that it prints."""
    # Nothing of the product's surroundings: what a stranger's client would have.
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/tmp")}
    environment |= {"ENGINE_HOST": engine.host, "ENGINE_KEY": engine.key, "SPEECH": str(speech)}
    done = subprocess.run(
        command, env=environment, cwd=FOLDER, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def assert_conversation(told: dict[str, Any]) -> None:
    """Check what a client had of a text turn, an audio turn and a tool turn."""
    assert says_42(told["text"]["answer"]), told["text"]
    heard = told["audio"]
    assert says_question(heard["heard"]), heard
    assert says_42(heard["answer"]), heard
    assert heard["bytes"] > SECOND_OF_AUDIO / 2, heard
    assert_tool(told["tool"])
    assert told["errors"] == []


def assert_tool(told: dict[str, Any]) -> None:
    """Check that the tool was called once, as its schema wants, and that its result was told."""
    assert told["calls"] == [{"city": "Paris"}], told
    assert "21" in told["answer"] or "twenty" in told["answer"].lower(), told


def assert_cut(told: dict[str, Any]) -> None:
    """Check that speech cut an answer short, and was answered itself."""
    assert told["cuts"] >= 1, told
    assert says_question(told["heard"]), told
    assert says_42(told["answer"]), told


def says_42(text: str) -> bool:
    """Whether an answer to the sum is right."""
    return re.search(r"\b42\b|forty.two", text.lower()) is not None


def says_question(text: str) -> bool:
    """Whether the spoken sum was understood, in words or in signs."""
    return re.search(r"(seven|7) (times|x|×|\*) (six|6)", text.lower()) is not None
