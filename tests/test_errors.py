"""The exception tree: which status goes with which code, and where everything is caught."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import voiceapp
from tests.parts.places import ROOT
from tests.parts.sources import trees
from voiceapp import errors
from voiceapp.errors import Refusal, VoiceAppError
from voiceapp.records.store.writer import StoreUnavailable

STATUSES = {
    "not_authorized": 401, "invalid_api_key": 401, "missing_api_key": 401, "text_engine_not_found": 404,
    "method_not_allowed": 405, "model_host_ambiguous": 409, "body_too_slow": 408, "body_too_large": 413,
    "rate_limit_exceeded": 429, "quota_requests": 429, "quota_concurrent": 429, "quota_tokens": 429,
    "structured_output_failed": 502, "text_engine_error": 502, "text_engine_refused": 502,
    "text_engine_unreachable": 502, "model_host_error": 502, "model_host_gone": 502,
    "model_host_incomplete": 502, "model_host_rejected": 502, "model_host_absent": 503,
    "server_stopping": 503, "model_host_busy": 503, "text_engine_timeout": 504, "model_host_timeout": 504,
    "store_unavailable": 503,
}  # fmt: skip
"""What programs are answered with; all other codes that reach them by HTTP are 400."""

NOT_FOR_PROGRAMS = {"too_many_connections": {429, 503}, "head_too_large": {431}}
"""Codes of sockets alone, by which HTTP answers before there is one."""


def classes() -> dict[str, type[VoiceAppError]]:
    """Return every exception of the product by its name."""
    for found in pkgutil.walk_packages(voiceapp.__path__, "voiceapp."):
        if re.search(r"\.(settings|asgi|migrations|loadtest|commands)\b", found.name) is None:
            importlib.import_module(found.name)

    def below(kind: type[VoiceAppError]) -> Iterator[type[VoiceAppError]]:
        for one in kind.__subclasses__():
            yield one
            yield from below(one)

    return {kind.__name__: kind for kind in below(VoiceAppError) if kind.__module__.startswith("voiceapp.")}


def raised() -> Iterator[tuple[str, str, int]]:
    """Yield (class, code, status) of every error that is made for programs with a code in its place."""
    kinds = classes()
    for tree in trees().values():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            kind = kinds.get(node.func.id)
            given: dict[str, Any] = {
                keyword.arg: keyword.value.value
                for keyword in node.keywords
                if keyword.arg and isinstance(keyword.value, ast.Constant)
            }
            if kind is Refusal and isinstance(node.args[0], ast.Constant):
                yield "Refusal", str(node.args[0].value), given.get("status", 400)
            elif kind is not None and issubclass(kind, (errors.TextEngineError, StoreUnavailable)):
                yield kind.__name__, given.get("code", kind.default_code), kind.status


def test_a_code_has_its_status_whoever_raises_it() -> None:
    made = set(raised())
    assert made
    assert [
        (kind, code, status)
        for kind, code, status in sorted(made)
        if status not in NOT_FOR_PROGRAMS.get(code, {STATUSES.get(code, 400)})
    ] == []


def test_every_code_of_the_table_is_raised() -> None:
    # The quota's codes and the key's are chosen where they are raised.
    chosen = {"quota_requests", "quota_concurrent", "quota_tokens", "invalid_api_key", "missing_api_key"}
    assert set(STATUSES) - {code for _, code, _ in raised()} == chosen


def test_a_refusal_brings_its_own_status_and_close_code() -> None:
    refusal = Refusal("too_many_sessions", "Later.", status=503, close_code=4009)
    assert (refusal.code, refusal.message, refusal.status, refusal.close_code) == (
        "too_many_sessions", "Later.", 503, 4009,
    )  # fmt: skip


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Every class stands once, indented below its base."""
    drawn = re.findall(r"^    ([│ ]*)[├└]── ([\w, ]+?)(?:  |$)", inspect.getdoc(errors) or "", re.MULTILINE)
    bases: list[str] = []
    found: dict[str, str] = {}
    for indent, names in drawn:
        depth = len(indent) // 4
        del bases[depth:]
        for name in names.split(", "):
            name = name.split()[0]
            found[name] = bases[-1] if bases else "VoiceAppError"
        bases.append(names.split(",")[0].split()[0])
    assert found == {name: kind.__bases__[0].__name__ for name, kind in classes().items() if name in found}
    public = {name for name, kind in classes().items() if kind.__module__ == "voiceapp.errors"}
    assert public <= set(found)


def handlers(tree: ast.AST, kind: str) -> Iterator[ast.ExceptHandler]:
    """Yield what catches a class of exceptions, alone or among others; none is ``BaseException``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            named = (
                {one.id for one in ast.walk(node.type) if isinstance(one, ast.Name)} if node.type else set()
            )
            if kind in named or (node.type is None and kind == "BaseException"):
                yield node


def test_everything_is_caught_only_at_the_boundary_of_a_task_and_with_a_reason() -> None:
    caught = [
        (path.relative_to(ROOT), text.splitlines()[handler.lineno].strip())
        for path, tree in trees().items()
        for text in [path.read_text()]
        for handler in handlers(tree, "Exception")
    ]
    assert len(caught) <= 14
    assert [path for path, following in caught if not following.startswith("#")] == []


def passes_on(function: ast.AST, handler: ast.ExceptHandler) -> bool:
    """Whether what a handler in a function caught is raised again, or handed to somebody who waits for it."""
    if isinstance(last := handler.body[-1], ast.Raise):
        return last.exc is None or names(last.exc) == {handler.name}
    inside = {id(node) for node in ast.walk(handler)}
    kept: set[str] = set()
    for node in ast.walk(handler):
        match node:
            case ast.Call(func=ast.Attribute(attr="set_exception"), args=[given]) if handler.name in names(
                given
            ):
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if handler.name in names(value):
                kept.add(name)
    for node in ast.walk(function):
        if id(node) in inside or not isinstance(node, ast.Raise | ast.Call):
            continue
        used = [node.exc] if isinstance(node, ast.Raise) else node.args
        if any(isinstance(one, ast.Name) and one.id in kept for one in used):
            return True
    return False


def names(node: ast.AST) -> set[str | None]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def kept_to_themselves(tree: ast.AST) -> list[int]:
    """Return the lines that catch everything, and hand it on to nobody."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sorted(
        handler.lineno
        for handler in handlers(tree, "BaseException")
        if not any(passes_on(function, handler) for function in functions if handler in ast.walk(function))
    )


def test_what_catches_even_more_passes_it_on() -> None:
    found = {path.relative_to(ROOT): kept_to_themselves(tree) for path, tree in trees().items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


PASSED_ON = (
    "except BaseException:\n  tidy()\n  raise",
    "except:\n  raise",
    "except (KeyError, BaseException) as e:\n  raise e",
    "except BaseException as e:\n  future.set_exception(e)",
    "except BaseException as e:\n  future.set_exception(Broken(type(e)))",
    "except BaseException as e:\n  error = e\n settle(error)",
    "except BaseException as e:\n  error = e if e else Broken()\n raise error",
)
KEPT = (
    "except BaseException:\n  pass",
    "except:\n  pass",
    "except (KeyError, BaseException) as e:\n  log(e)",
    "except BaseException as e:\n  error = e",
    "except BaseException as e:\n  error = None\n settle(error)",
    "except BaseException as e:\n  other.set_exception(Broken())",
    "except BaseException as e:\n  if e: raise\n  log(e)",
)


@pytest.mark.parametrize(
    ("code", "is_kept"), [*((one, False) for one in PASSED_ON), *((one, True) for one in KEPT)]
)
def test_what_is_caught_and_kept_is_found(code: str, is_kept: bool) -> None:
    assert bool(kept_to_themselves(ast.parse(f"def f():\n try: work()\n {code}"))) is is_kept


def held_where_raised(node: ast.AST, freed: frozenset[str] = frozenset()) -> Iterator[int]:
    """Yield the lines that raise what a name holds that stays: its traceback holds the name's frame.

    The name of an ``except`` goes at its end, and what a ``finally`` deletes goes there.
    """
    raised = node.exc if isinstance(node, ast.Raise) else None
    if isinstance(raised, ast.Name) and raised.id.islower() and raised.id not in freed:
        yield raised.lineno
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        freed = frozenset()
    if isinstance(node, ast.ExceptHandler) and node.name:
        freed |= {node.name}
    if isinstance(node, ast.Try):
        deleted = [target for one in node.finalbody if isinstance(one, ast.Delete) for target in one.targets]
        freed |= {target.id for target in deleted if isinstance(target, ast.Name)}
    for child in ast.iter_child_nodes(node):
        yield from held_where_raised(child, freed)


def test_no_exception_is_held_by_the_call_that_raises_it() -> None:
    found = {path.relative_to(ROOT): list(held_where_raised(tree)) for path, tree in trees().items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "is_held"),
    [
        ("if fault := check():\n  raise fault", True),
        ("try:\n  work()\n except OSError as error:\n  kept = error\n raise kept", True),
        ("try:\n  work()\n except OSError as error:\n  raise error", False),
        ("try:\n  raise fault\n finally:\n  del fault", False),
        ("raise fault()", False),
        ("raise Fault", False),
    ],
)
def test_an_exception_that_is_held_is_found(code: str, is_held: bool) -> None:
    assert bool(list(held_where_raised(ast.parse(f"def f():\n {code}")))) is is_held
