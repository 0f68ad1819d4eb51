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
from voiceapp import errors
from voiceapp.errors import Refusal, VoiceAppError

STATUSES = {
    "not_authorized": 401, "invalid_api_key": 401, "missing_api_key": 401, "text_engine_not_found": 404,
    "method_not_allowed": 405, "model_host_ambiguous": 409, "body_too_slow": 408, "body_too_large": 413,
    "rate_limit_exceeded": 429, "quota_requests": 429, "quota_concurrent": 429, "quota_tokens": 429,
    "structured_output_failed": 502, "text_engine_error": 502, "text_engine_refused": 502,
    "text_engine_unreachable": 502, "model_host_error": 502, "model_host_gone": 502,
    "model_host_incomplete": 502, "model_host_rejected": 502, "model_host_absent": 503,
    "server_stopping": 503, "model_host_busy": 503, "text_engine_timeout": 504, "model_host_timeout": 504,
}  # fmt: skip
"""What programs are answered with; all other codes that reach them by HTTP are 400."""

NOT_FOR_PROGRAMS = {"too_many_connections": {429, 503}, "head_too_large": {431}}
"""Codes of sockets alone, by which HTTP answers before there is one."""

SOURCES = sorted((ROOT / "voiceapp").rglob("*.py"))


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
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
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
            elif kind is not None and issubclass(kind, errors.TextEngineError):
                yield kind.__name__, given.get("code", kind.default_code), kind.status


@pytest.mark.parametrize("made", sorted(set(raised())), ids=str)
def test_a_code_has_its_status_whoever_raises_it(made: tuple[str, str, int]) -> None:
    _, code, status = made
    assert status in NOT_FOR_PROGRAMS.get(code, {STATUSES.get(code, 400)})


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


def test_everything_is_caught_only_at_the_boundary_of_a_task_and_with_a_reason() -> None:
    caught = [
        (path.relative_to(ROOT), lines[number + 1].strip())
        for path in SOURCES
        for lines in [path.read_text().splitlines()]
        for number, line in enumerate(lines)
        if re.search(r"except\*? Exception\b", line)
    ]
    assert len(caught) <= 15
    assert [path for path, following in caught if not following.startswith("#")] == []


def test_what_catches_even_more_passes_it_on() -> None:
    caught = [
        following
        for path in SOURCES
        for following in re.findall(r"except\*? BaseException\b.*:\n((?:.+\n){1,4})", path.read_text())
    ]
    # It is raised again, or handed to the future that somebody waits for.
    assert [text for text in caught if not re.search(r"\braise\n|set_exception\(|error = ", text)] == []
    assert not [path for path in SOURCES if re.search(r"except:", path.read_text())]
