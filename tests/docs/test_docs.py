"""The documents say what is true: settings, events, codes, tools, commands, limits, links and files."""

from __future__ import annotations

import re
import tomllib

import pytest
from django.core.management import get_commands

from docs import generate
from tests.parts.places import ROOT
from tests.test_errors import STATUSES
from voiceapp.assistants.http_tools import MAX_HTTP_TOOLS, MAX_OPERATIONS, MAX_SETS
from voiceapp.config import SETTINGS
from voiceapp.conversation import page_policy, unconfirmed
from voiceapp.protocol.page import CloseCode
from voiceapp.records.setup import seeding
from voiceapp.records.store import notes, search
from voiceapp.relay.browser import admission, consumer, echo
from voiceapp.relay.session import attachment, microphone, outbox, timers
from voiceapp.serving import budget, handshake, refusals
from voiceapp.serving.consumer import PROGRAM_PACE
from voiceapp.tools import functions
from voiceapp.tools.http import openapi, operation, schema, tools
from voiceapp.tools.registry import registry
from voiceapp.tools.shipped.session import MAX_NOTE_CHARS
from voiceapp.web import server

PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "voiceapp").rglob("*.md"))
}
SOURCES = {path: path.read_text() for path in (ROOT / "voiceapp").rglob("*.py")}
CODES = {code for text in SOURCES.values() for code in re.findall(r'"([a-z]+(?:_[a-z]+)+)"', text)}
FILE_NAMES = {
    path.name
    for folder in (ROOT, *(ROOT / name for name in ("docs", "static", "templates", "tests", "voiceapp")))
    for path in (folder.glob("*") if folder == ROOT else folder.rglob("*"))
}
"""A file that was just named with its folder, or lies in the root, is named alone."""

each_page = pytest.mark.parametrize("page", sorted(PAGES))


def table(page: str, *heads: str) -> list[list[str]]:
    """Return the cells of the table of ``page`` that has these heads, row by row."""
    head = re.escape(f"| {' | '.join(heads)} |")
    found = re.search(rf"^{head}\n\|[ -|]+\n((?:\|.*\n)+)", PAGES[page], re.M)
    assert found, f"{page} has no table {heads}"
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in found[1].splitlines()]


def in_code(text: str) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


# -- what comes from the code ---------------------------------------------------------------------------


def test_the_generated_parts_are_what_the_code_says() -> None:
    assert not generate.outdated(), "run python -m docs.generate"


def test_a_part_that_is_out_of_date_is_noticed_and_mended() -> None:
    stale = PAGES["docs/engine.md"].replace("| `session.created` | emitted |", "| `session.created` |  |")
    assert stale != PAGES["docs/engine.md"]
    assert generate.engine(stale) == PAGES["docs/engine.md"]


def test_a_document_without_its_part_is_noticed() -> None:
    with pytest.raises(ValueError, match="settings"):
        generate.configuration("# Configuration\n")


def test_the_table_of_settings_has_each_setting_and_no_other() -> None:
    rows = table("docs/configuration.md", "Variable", "Default", "Meaning")
    assert [row[0] for row in rows] == [f"`{setting.name}`" for setting in SETTINGS]
    for row, setting in zip(rows, SETTINGS, strict=True):
        default = setting.default
        shown = str(int(default)) if isinstance(default, bool) else str(default).removesuffix(".0")
        assert row[1:] == [f"`{shown}`" if shown else "", setting.help]


@each_page
def test_the_settings_that_are_named_exist(page: str) -> None:
    named = set(re.findall(r"\b(?:VOICEAPP|AZURE_OPENAI|DATABASE)_[A-Z_]+\b", PAGES[page]))
    # Commands that connect to a server read their token from the environment, settings do not have it.
    assert named - {"VOICEAPP_TOKEN"} <= {setting.name for setting in SETTINGS}


def test_the_tools_that_come_along_are_all_described() -> None:
    named = [name for row in table("docs/tools.md", "Tool", "Say, for instance") for name in in_code(row[0])]
    assert sorted(named) == sorted(seeding.TOOLS)
    assert set(named) <= set(registry.names())


def test_the_commands_are_all_described() -> None:
    described = [in_code(row[0])[0] for row in table("docs/operations.md", "Command", "What it does")]
    own = {name for name, app in get_commands().items() if str(app).startswith("voiceapp.")}
    # `test` is run by manage.py itself, so that it works before Django is installed.
    assert own <= set(described) <= {*get_commands(), "test"}


@each_page
def test_the_commands_that_are_named_exist(page: str) -> None:
    commands = set(re.findall(r"manage\.py ([\w-]+)", PAGES[page])) - {"test"}
    assert commands - {"NAME"} <= set(get_commands())


# -- codes of errors ------------------------------------------------------------------------------------


def test_the_statuses_for_programs_are_those_that_are_sent() -> None:
    rows = table("docs/text.md", "Status", "Codes")
    described = {code: int(row[0]) for row in rows for code in in_code(row[1])}
    assert described == STATUSES


def test_the_codes_of_the_voice_service_are_all_described() -> None:
    rows = table("docs/operations.md", "Code", "What to check")
    described = {code for row in rows for code in in_code(row[0])}
    # The base's own code is never used, and the others are notices of what is going on.
    elsewhere = {"upstream_error", "upstream_starting", "upstream_reconnecting", "upstream_kind"}
    assert (
        described == {code for code in CODES if code.startswith(("upstream_", "configuration_r"))} - elsewhere
    )


# -- limits ---------------------------------------------------------------------------------------------


def test_the_limits_of_tools_are_those_in_force() -> None:
    assert table("docs/tools.md", "At most", "Number") == [
        [
            "document / operations of a set",
            f"{openapi.MAX_DOCUMENT_BYTES:,} bytes / {MAX_OPERATIONS}, more can be chosen from",
        ],
        ["sets of an assistant / operations of all of them", f"{MAX_SETS} / {MAX_HTTP_TOOLS}"],
        [
            "a tool's arguments, described",
            f"{operation.MAX_SCHEMA_CHARS:,} characters, {schema.MAX_NODES:,} parts, "
            f"{schema.MAX_DEPTH} levels",
        ],
        ["time of a call, redirects", f"{tools.CALL_S:g} s, none"],
        ["calls of one session at once", f"{tools.AT_ONCE}"],
        ["answer that the model is given", f"{functions.MAX_OUTPUT_CHARS:,} characters"],
    ]
    page = " ".join(PAGES["docs/tools.md"].split())
    assert f"A session may have {timers.MAX_TIMERS} timers" in page
    assert f"A user may have {notes.MAX_NOTES} notes of {MAX_NOTE_CHARS:,} characters." in page
    assert f"A search gives the newest {search.MAX_FOUND} conversations." in page


def test_the_limits_of_the_page_s_socket_are_those_in_force() -> None:
    text = " ".join(PAGES["docs/page-protocol.md"].split())
    assert f"sends `session.start` within {consumer.FIRST_MESSAGE_S:g} seconds" in text
    kept = f"{unconfirmed.SPEECH_MS / 1000:g} seconds of audio, {unconfirmed.MAX_EVENTS} events"
    assert f"before that is kept: {kept}" in text
    assert f"Once {outbox.WINDOW_BYTES / 1024**2:g} MiB is on its way" in text
    assert f"acknowledges nothing for {attachment.STALL_S:g} seconds is let go" in text
    assert f"input format, {microphone.MAX_FRAME_BYTES:,} bytes at most" in text
    assert f"A text message has {consumer.MAX_TEXT_CHARS:,} characters at most" in text
    pace, idle = consumer.PACE, budget.IDLE_PACE
    assert f"{pace.messages_a_s} messages and {pace.bytes_a_s:,} bytes a second" in text
    assert f"{pace.messages_at_once:,} messages and {pace.bytes_at_once:,} bytes at once" in text
    assert f"more than {idle.messages_a_s} pings, pongs" in text
    assert f"less than {budget.SMALL_FRAGMENT_BYTES} bytes a second, {idle.messages_at_once} at" in text
    assert f"more than {handshake.MAX_HEAD_BYTES:,} bytes of headers" in text
    assert f"`POST {admission.WHY}`" in text
    assert f"a message of more than {server.MAX_MESSAGE_BYTES:,} bytes" in text
    assert f"with text, {page_policy.MAX_TEXT_CHARS:,} characters at most" in text


def test_the_limits_of_the_self_check_are_those_in_force() -> None:
    text = " ".join(PAGES["docs/page-protocol.md"].split())
    pace = echo.PACE
    assert f"lives {echo.LIFE_S:g} seconds and takes {echo.MAX_BYTES:,} bytes in all" in text
    assert f"{pace.messages_a_s:g} messages a second and {pace.messages_at_once} at once" in text
    codes = [int(row[0]) for row in table("docs/page-protocol.md", "Code", "Why it closes")]
    assert codes == [echo.DONE, echo.UNREADABLE, echo.TOO_LARGE, CloseCode.TOO_MANY]


def test_the_limits_of_every_socket_are_those_in_force() -> None:
    text = " ".join(PAGES["docs/operations.md"].split())
    idle, pace = budget.IDLE_PACE, PROGRAM_PACE
    assert f"{idle.messages_a_s} a second and {idle.messages_at_once} at once" in text
    assert f"{pace.messages_a_s:,} messages or {pace.bytes_a_s:,} bytes a second" in text
    assert f"{pace.messages_at_once:,} or {pace.bytes_at_once:,} at once" in text
    assert f"heads of {handshake.MAX_HEAD_BYTES:,} bytes" in text
    assert f"once in {refusals.AGAIN_S:g} seconds" in text


# -- links, files, versions, size -----------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@each_page
def test_the_links_lead_somewhere(page: str) -> None:
    for target, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^):]+)\)", PAGES[page])):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text()), f"{target}#{anchor}"


@each_page
def test_the_files_that_are_named_exist(page: str) -> None:
    endings = "py|js|mjs|md|toml|css|html"
    named = re.findall(
        rf"(?<![\w/.:-])((?:[\w.-]+/)*(?:[\w-][\w.-]*\.(?:{endings}))?)(?![\w/.-]*\w)", PAGES[page]
    )
    roots = (ROOT, ROOT / "voiceapp", ROOT / "static" / "voiceapp")
    missing = [
        name
        for name in filter(None, named)
        if name not in FILE_NAMES and not any((root / name).exists() for root in roots)
    ]
    assert not missing


@each_page
def test_the_programs_that_are_named_exist(page: str) -> None:
    for module in re.findall(r"-m ((?:tests|docs)\.[\w.]*\w)", PAGES[page]):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module


@each_page
def test_nothing_is_left_to_be_filled_in(page: str) -> None:
    assert "@@" not in PAGES[page]


def test_packages_are_named_in_the_versions_that_are_tested() -> None:
    pinned = {
        package
        for extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ].values()
        for package in extra
    }
    texts = [*PAGES.values(), *SOURCES.values()]
    named = {found for text in texts for found in re.findall(r"pip install '?([\w\[\]-]+==[\d.]+\d)", text)}
    assert named == pinned


@pytest.mark.parametrize(("page", "words"), [("README.md", 600), ("ARCHITECTURE.md", 1500)])
def test_what_is_read_first_is_short(page: str, words: int) -> None:
    assert len(PAGES[page].split()) <= words
