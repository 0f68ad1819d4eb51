"""The rules of the house: where things stand, how long they are, and what they are called."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.parts.places import ROOT
from tests.parts.sources import trees

SOURCE: Final = ROOT / "voiceapp"
TESTS: Final = ROOT / "tests"

MOST_FILES: Final = 14
MOST_LINES: Final = 400
MOST_FUNCTION_LINES: Final = 50
MOST_ATTRIBUTES: Final = 12

LONG_MODULES: Final = {
    "protocol/events.py": "One struct for each event of the Realtime API: a table.",
}
LONG_FUNCTIONS: Final[dict[str, str]] = {}

ELSEWHERE: Final[dict[str, str]] = {
    "asgi.py": "tests/conftest.py serves it as the product.",
    "clients/chat_as_responses.py": "tests/clients/test_model_host.py serves an endpoint of chat with it.",
    "conversation/conversation.py": "tests/laws/test_conversation.py, in any order of events.",
    "conversation/parts.py": "tests/laws/test_conversation.py: the parts of whole conversations.",
    "protocol/close_codes.py": "tests/protocol/test_page.py: the codes, and what the page knows of them.",
    "records/store/entries.py": "No behaviour: structs of what is handed over.",
    "engine/inference/loading.py": "tests/engine/server/test_connection.py: models that fail and load again.",
    "engine/server/client_secrets.py": "tests/engine/server/test_client_secret_views.py makes and uses them.",
    "engine/session/actions.py": "No behaviour: structs of what is to be done and of facts.",
    "engine/session/context.py": "No behaviour: what the parts of a session share.",
    "engine/session/event_types.py": "No behaviour: tables, held to the truth by tests/docs/test_events.py.",
    "loadtest/bare.py": "tests/loadtest/test_measure.py runs the command with a bare server beside.",
    "loadtest/clients.py": "tests/loadtest/test_measure.py runs the command with its clients.",
    "loadtest/service.py": "tests/loadtest/test_measure.py runs the command with its service.",
    "outbound/entra.py": "tests/text/chat/test_service.py: a token for each request, and none.",
    "records/apps.py": "No behaviour: it connects the seeding, which every test with a database finds done.",
    "records/models/assistants.py": "tests/records/admin/test_assistants.py: forms and configurations.",
    "records/models/http_tools.py": "tests/records/admin/test_http_tools.py: sets and their documents.",
    "records/models/notes.py": "No behaviour: a table.",
    "records/models/sessions.py": "tests/records/admin/test_sessions.py: titles, lengths, what was said.",
    "records/models/tokens.py": "No behaviour: two tables.",
    "records/reading/assistants.py": "tests/tools/mcp/test_hosting.py: the check of assistants with servers.",
    "records/reading/sessions.py": "tests/web/test_views.py: whose sessions are shown to whom.",
    "records/recording/journal.py": "tests/records/recording/test_archive.py: journal files of every format.",
    "records/setup/seeding.py": "tests/conftest.py and tests/text/brain/test_shipped.py use what it makes.",
    "records/store/history.py": "tests/records/store/test_store.py: history in order, and nobody else's.",
    "records/store/notes.py": "tests/relay/session/test_capabilities.py: notes of a session's user.",
    "records/store/search.py": "tests/relay/session/test_capabilities.py: search in one's own conversations.",
    "records/threads.py": "tests/web/test_views_not_found.py: threads keep no connection.",
    "relay/browser/login.py": "tests/relay/browser/test_consumer_input.py: logins and other origins.",
    "signals.py": "No behaviour: two signals.",
    "text/brain/repertoire.py": "No behaviour: jokes, stories and reasons.",
    "text/model_host/provider.py": "tests/text/model_host/test_link.py: the provider behind a link.",
    "tools/capabilities.py": "No behaviour: protocols of what a session lets its tools do.",
    "tools/mcp/connection.py": "tests/tools/mcp/test_client.py: a real server behind the connection.",
    "tools/mcp/messages.py": "No behaviour: structs, read by tests/tools/mcp/test_rules.py.",
    "urls.py": "No behaviour: a table of addresses.",
    "web/apps.py": "No behaviour: it imports the checks.",
    "web/management/commands/golden.py": "tests/gateway/test_contract.py calls the command golden.",
    "web/management/commands/loadtest.py": "tests/loadtest/test_measure.py calls the command.",
    "web/management/commands/model-host.py": "tests/text/test_providers.py starts the command model-host.",
    "web/management/commands/nnrp.py": "tests/nnrp/test_backing.py starts the command.",
    "web/management/commands/runserver.py": "tests/clients/test_talk.py talks with runserver.",
    "web/management/commands/summarize.py": "tests/review/test_worker.py calls the command summarize.",
    "web/management/commands/talk.py": "tests/clients/test_talk.py calls the command.",
    "web/management/commands/up.py": "tests/web/test_server.py starts the command up.",
    "web/models.py": "No behaviour: a table, used by tests/web/test_signin.py.",
}
"""Modules without a test module of their name: which one tests them, or why there is nothing to test."""

# Words that say nothing in this field, or something else in it.
NOT_IN_NAMES: Final = frozenset(
    ["told", "brought", "whose", "news", "door", "leg", "wish", "keeper", "doubt"]
)
NOT_IN_THE_RELAY: Final = frozenset(["line"])
"""Words that are not used for a connection: in ``relay/`` and ``conversation/``, that is anywhere."""
NOT_IN_CLASSES: Final = frozenset(["hearing", "thinking"])
"""Words that name no class, but for what an assistant is set to."""
NAMES_THAT_STAND: Final[dict[str, str]] = {}

# Django and Channels look for these by their name.
FRAMEWORK_CLASSES: Final = frozenset(["Command", "Media", "Meta", "Migration"])
DOUBLE_CLASSES: Final[dict[str, str]] = {}


@cache
def sources() -> dict[str, ast.Module]:
    """Return the syntax tree of each file of the product, by its path within ``voiceapp/``."""
    return {
        path.relative_to(SOURCE).as_posix(): tree
        for path, tree in trees().items()
        if "migrations" not in path.parts
    }


def modules() -> list[str]:
    return [name for name in sources() if not name.endswith("__init__.py")]


def own_tests(name: str) -> Path:
    path = Path(name)
    return TESTS / path.parent / f"test_{path.name}"


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names that a module imports, each name of ``from … import`` with its module's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# -- tests ------------------------------------------------------------------------------------------------


def test_each_module_is_tested_in_the_module_of_its_name_or_elsewhere_for_a_reason() -> None:
    without = {name for name in modules() if not own_tests(name).exists()}
    assert sorted(without - ELSEWHERE.keys()) == [], "a test module of its name is missing, or a reason"
    assert sorted(ELSEWHERE.keys() - without) == [], "these have a test module of their name, or are gone"


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_the_reason_names_the_test_that_there_is(name: str) -> None:
    reason = ELSEWHERE[name]
    found = re.findall(r"tests/[\w/]+\.py", reason)
    if reason.startswith("No behaviour: "):
        assert all((ROOT / path).exists() for path in found)
        return
    assert found, "where is it tested?"
    leaf = Path(name).stem
    dotted = f"voiceapp.{name.removesuffix('.py').replace('/', '.')}"
    for path in found:
        text = (ROOT / path).read_text("utf-8")
        named = re.search(rf"(?<![a-z]){re.escape(leaf)}(?![a-z])", text) is not None
        assert named or dotted in set(imported(ast.parse(text))), f"{path} does not know it"


def test_a_module_without_behaviour_has_no_functions_that_decide() -> None:
    deciding = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.Match, ast.comprehension)
    for name, reason in ELSEWHERE.items():
        if not reason.startswith("No behaviour: "):
            continue
        functions = [
            node
            for node in ast.walk(sources()[name])
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        inside = [inner for one in functions for inner in ast.walk(one) if isinstance(inner, deciding)]
        assert not inside, name


def test_no_test_module_is_left_of_a_module_that_is_gone() -> None:
    """A test module begins with the name of a module of its folder, where the product has that folder."""
    for path in TESTS.rglob("test_*.py"):
        folder = SOURCE / path.parent.relative_to(TESTS)
        if path.parent == TESTS or not folder.is_dir():
            continue
        subjects = [one.stem for one in folder.glob("*.py") if one.stem != "__init__"]
        subject = path.stem.removeprefix("test_")
        assert any(subject == one or subject.startswith(f"{one}_") for one in subjects), path


# -- folders, modules, functions ---------------------------------------------------------------------------


def test_each_package_says_what_it_is() -> None:
    packages = {name: tree for name, tree in sources().items() if name.endswith("__init__.py")}
    assert len(packages) > 30
    assert [name for name, tree in packages.items() if not ast.get_docstring(tree)] == []
    assert {Path(name).parent for name in modules()} <= {Path(name).parent for name in packages}


def test_a_folder_has_few_modules() -> None:
    counted = Counter(Path(name).parent.as_posix() for name in modules())
    assert {folder: count for folder, count in counted.items() if count > MOST_FILES} == {}


def test_modules_are_short() -> None:
    lines = {name: len((SOURCE / name).read_text("utf-8").splitlines()) for name in modules()}
    assert {name for name, count in lines.items() if count > MOST_LINES} == LONG_MODULES.keys()


def test_functions_are_short() -> None:
    long = {
        f"{name}:{node.name}"
        for name, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MOST_FUNCTION_LINES
    }
    assert long == LONG_FUNCTIONS.keys()


# -- names --------------------------------------------------------------------------------------------------


def names_in(tree: ast.Module) -> Iterator[str]:
    """Yield what a module defines, takes, assigns and reads: classes, functions, arguments, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.alias(asname=str(name)):
                yield name


def words_of(name: str) -> set[str]:
    """Return the words of a name in snake case or camel case, plurals without their ending."""
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return words | {word.removesuffix("s") for word in words} | {word.removesuffix("es") for word in words}


def test_the_words_of_a_name_are_found() -> None:
    assert words_of("_read_HTTPDoors") >= {"read", "http", "door"}
    assert words_of("MAX_WISHES") >= {"max", "wish"}
    assert not NOT_IN_NAMES & words_of("legal_newsletter")


def test_names_are_words_of_the_field() -> None:
    trees = {**sources(), "manage.py": ast.parse((ROOT / "manage.py").read_text("utf-8"))}
    found = {
        f"{path}:{name}"
        for path, tree in trees.items()
        for name in names_in(tree)
        if NOT_IN_NAMES & words_of(name)
        or (path.startswith(("relay/", "conversation/")) and NOT_IN_THE_RELAY & words_of(name))
    }
    assert sorted(found) == sorted(NAMES_THAT_STAND)


def test_no_class_is_named_for_what_it_does_to_somebody() -> None:
    classes = {
        node.name for tree in sources().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    assert {name for name in classes if NOT_IN_CLASSES & words_of(name)} == {"Thinking"}


def test_no_two_classes_have_one_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in FRAMEWORK_CLASSES:
                places[node.name].append(path)
    assert {name: there for name, there in places.items() if len(there) > 1}.keys() == DOUBLE_CLASSES.keys()


# -- the relay and its conversation ------------------------------------------------------------------------


def test_the_relay_calls_verbs_of_the_conversation_and_reaches_into_none_of_its_parts() -> None:
    found = {
        f"{path}:{line}"
        for path, tree in sources().items()
        if path.startswith("relay/")
        for line in reaching_in(tree)
    }
    assert found == set()


def reaching_in(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that name a private part of a conversation, or a member of a part."""

    def is_conversation(node: ast.AST) -> bool:
        match node:
            case ast.Attribute(attr="conversation" | "_conversation") | ast.Name(id="conversation"):
                return True
        return False

    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(value=inner)) if is_conversation(inner):
                yield node.lineno
            case ast.Attribute(value=inner, attr=name) if name.startswith("_") and is_conversation(inner):
                yield node.lineno
            case ast.Call(func=ast.Name(id="getattr" | "vars" | "setattr"), args=[inner, *_]) if (
                is_conversation(inner)
            ):
                yield node.lineno


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("self.conversation.quiet(now)", 0), ("owner.conversation.answers", 0), ("conversation.ready", 0),
        ("self.conversation.items.order", 1), ("conversation._parts", 1), ("self._conversation._parts", 1),
        ("self.owner.conversation._parts.items", 2), ("getattr(conversation, name)", 1),
    ],
)  # fmt: skip
def test_reaching_into_a_conversation_is_found(code: str, count: int) -> None:
    assert len(list(reaching_in(ast.parse(code)))) == count


def test_a_live_session_has_few_attributes() -> None:
    (live,) = (
        node
        for node in ast.walk(sources()["relay/session/live.py"])
        if isinstance(node, ast.ClassDef) and node.name == "LiveSession"
    )
    attributes = {
        node.attr
        for node in ast.walk(live)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    assert 0 < len(attributes) <= MOST_ATTRIBUTES, sorted(attributes)
