"""The README says what is true."""

from __future__ import annotations

import re
import tomllib

from django.core.management import get_commands

from tests.parts.places import ROOT
from voiceapp.config import SETTINGS, Setting

README = (ROOT / "README.md").read_text()


def row(setting: Setting) -> str:
    """Return the README's row of a setting."""
    default = setting.default
    if isinstance(default, bool):
        shown = "1" if default else "0"
    elif isinstance(default, float):
        shown = f"{default:g}"
    else:
        shown = str(default)
    return f"| `{setting.name}` | {f'`{shown}`' if shown else ''} | {setting.help} |"


def test_the_table_of_settings_is_the_tables_own() -> None:
    rows = [
        line for line in README.splitlines() if line.startswith(("| `VOICEAPP_", "| `AZURE_", "| `DATABASE_"))
    ]
    assert rows == [row(setting) for setting in SETTINGS]


def test_the_settings_named_elsewhere_exist() -> None:
    named = set(re.findall(r"\b(?:VOICEAPP|AZURE_OPENAI|DATABASE)_[A-Z_]+\b", README))
    # Commands that connect to a server read their token from the environment, settings do not have it.
    assert named - {"VOICEAPP_TOKEN"} == {setting.name for setting in SETTINGS}


def test_the_commands_named_exist() -> None:
    commands = set(re.findall(r"manage\.py ([\w-]+)", README))
    # `test` is run by manage.py itself, so that it works before Django is installed.
    assert commands - {"test"} <= set(get_commands())


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_nothing_is_left_to_be_filled_in() -> None:
    assert "@@" not in README


def test_packages_are_named_in_the_versions_that_are_tested() -> None:
    pinned = {
        package
        for extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ].values()
        for package in extra
    }
    texts = [README, *(path.read_text() for path in (ROOT / "voiceapp").rglob("*.py"))]
    named = {found for text in texts for found in re.findall(r"pip install '?([\w\[\]-]+==[\d.]+\d)", text)}
    assert len(named) >= len(pinned)
    assert named <= pinned
