"""Tools of an app that somebody else wrote: found in its ``voice_tools``, without a line of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.parts.places import ROOT

TOOLS = '''
from voiceapp.tools.registry import ToolContext, tool


@tool(name="opening_hours", timeout_s=5, progress="Looking that up…")
async def hours(shop: str, context: ToolContext) -> dict[str, str]:
    """Tell when a shop is open."""
    return {"shop": shop, "open": "9 to 5"}


@tool(needs_approval=True)
def order_bread(loaves: int) -> str:
    """Order bread."""
    return f"{loaves} loaves are ordered."
'''
PROGRAM = """
import asyncio, json
from uuid import uuid4
from voiceapp.records.admin.fields import ToolChoice
from voiceapp.tools.registry import ToolContext, registry

told = []
context = ToolContext(uuid4(), 1, "call_1", told.append)
output = asyncio.run(registry.run("opening_hours", '{"shop": "Bakery"}', context, ["opening_hours"]))
print(json.dumps({
    "definition": registry.definitions(["opening_hours"])[0],
    "output": json.loads(output),
    "told": told,
    "asks": sorted(registry.ask_first(registry.names())),
    "choices": [name for name, _ in ToolChoice().choices],
}))
"""


def test_an_app_in_the_settings_brings_its_tools(tmp_path: Path) -> None:
    app = tmp_path / "bakery"
    app.mkdir()
    (app / "__init__.py").write_text("")
    (app / "voice_tools.py").write_text(TOOLS)
    (tmp_path / "site_settings.py").write_text(
        "from voiceapp.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'bakery']\n"
    )
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("VOICEAPP_")},
        "DJANGO_SETTINGS_MODULE": "site_settings",
        "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT))),
        "VOICEAPP_DATA_DIR": str(tmp_path / "data"),
    }
    code = f"import django; django.setup()\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["definition"]["description"] == "Tell when a shop is open."
    assert told["definition"]["parameters"]["required"] == ["shop"]
    assert told["output"] == {"shop": "Bakery", "open": "9 to 5"}
    assert told["told"] == ["Looking that up…"]
    assert "order_bread" in told["asks"]
    # An administrator can give them to an assistant.
    assert "opening_hours" in told["choices"]
