"""``manage.py`` on a machine that has nothing but Python."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.parts.places import ROOT

BARE_PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, in a folder of its own with two locks."""
    spec = importlib.util.spec_from_file_location("manage_under_test", ROOT / "manage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for name in module.LOCKS.values():
        (tmp_path / name).write_text("django==5.2\n")
    return module


@pytest.fixture
def calls(project: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the script runs; making an environment makes its Python."""
    made: list[list[str]] = []

    def call(arguments: list[str], **_: Any) -> int:
        made.append(arguments)
        if arguments[1:3] == ["-m", "venv"]:
            (Path(arguments[3]) / "bin").mkdir(parents=True, exist_ok=True)
            (Path(arguments[3]) / "bin" / "python").touch()
        return 0

    monkeypatch.setattr(project.subprocess, "call", call)
    return made


def kinds(calls: list[list[str]]) -> list[str]:
    return [
        " ".join(call[1:4]) if call[2] == "pip" else " ".join(call[1:3]) for call in calls if call[1] == "-m"
    ]


def test_the_first_start_makes_an_environment_and_installs_with_hashes(
    project: Any, calls: list[list[str]]
) -> None:
    folder = project.ROOT / ".venv"
    project.install(folder, folder / "bin" / "python", "requirements.lock")
    assert kinds(calls) == ["-m venv", "-m pip install"]
    assert calls[-1][-3:] == ["--require-hashes", "-r", str(project.ROOT / "requirements.lock")]


def test_later_starts_install_only_when_the_lock_changed(project: Any, calls: list[list[str]]) -> None:
    folder = project.ROOT / ".venv"
    install = (folder, folder / "bin" / "python", "requirements.lock")
    project.install(*install)
    calls.clear()
    project.install(*install)
    assert calls == []
    (project.ROOT / "requirements.lock").write_text("django==5.3\n")
    project.install(*install)
    assert kinds(calls) == ["-m pip install"]


def test_the_lock_for_tests_counts_for_both(project: Any, calls: list[list[str]]) -> None:
    folder = project.ROOT / ".venv"
    project.install(folder, folder / "bin" / "python", "requirements-test.lock")
    calls.clear()
    project.install(folder, folder / "bin" / "python", "requirements.lock")
    assert calls == []


def test_the_lock_for_tests_holds_all_that_the_other_holds() -> None:
    pins = {
        name: set(re.findall(r"^[a-z0-9][^ ;\\]*==[^ ;\\]+", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-test.lock")
    }
    assert pins["requirements.lock"]
    assert pins["requirements.lock"] <= pins["requirements-test.lock"]


def test_an_active_environment_is_used_and_never_made_again(project: Any, calls: list[list[str]]) -> None:
    folder = project.ROOT / "mine"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    project.install(folder, folder / "bin" / "python", "requirements.lock")
    assert kinds(calls) == ["-m pip install"]


def test_a_failed_installation_is_tried_again(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project.ROOT / "mine"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    monkeypatch.setattr(project.subprocess, "call", lambda arguments, **_: int("-r" in arguments))
    for _ in range(2):
        with pytest.raises(SystemExit, match="could not be installed"):
            project.install(folder, folder / "bin" / "python", "requirements.lock")


@pytest.mark.parametrize(("status", "shown"), [(0, False), (1, True)])
def test_what_is_printed_by_the_way_is_shown_only_where_it_fails(
    project: Any, capfd: pytest.CaptureFixture[str], status: int, shown: bool
) -> None:
    folder = project.ROOT / "mine"
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    warns = f"echo WARNING: one\necho WARNING: two \\377 >&2\ncase $* in *install*) exit {status};; esac"
    python.write_text(f"#!/bin/sh\n{warns}\n")
    python.chmod(0o755)
    with contextlib.suppress(SystemExit) if shown else contextlib.nullcontext():
        project.install(folder, python, "requirements.lock")
    out, err = capfd.readouterr()
    assert out.splitlines() == ["Installing the packages of requirements.lock …"]
    assert ("WARNING: one" in err, "WARNING: two" in err) == (shown, shown)


def test_a_python_that_cannot_make_environments_is_a_sentence(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project.subprocess, "call", lambda arguments, **_: 1)
    folder = project.ROOT / ".venv"
    with pytest.raises(SystemExit, match="python3-venv"):
        project.install(folder, folder / "bin" / "python", "requirements.lock")


@pytest.fixture
def checkout(tmp_path: Path, project: Any) -> Path:
    """A checkout whose ``.venv`` is complete, with a Python that tells how it was called."""
    folder = tmp_path / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    fake = folder / "bin" / "python"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    shutil.copy(ROOT / "manage.py", tmp_path)
    (folder / "voiceapp-installed.json").write_text(
        json.dumps({lock: project.digest(lock) for lock in project.LOCKS.values()})
    )
    return tmp_path


@pytest.mark.parametrize("arguments", [["up", "--port", "1"], ["test", "-k", "x"], ["talk", "--json"]])
def test_commands_run_in_the_environment(checkout: Path, arguments: list[str]) -> None:
    script = str(checkout / "manage.py")
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    result = subprocess.run([BARE_PYTHON, script, *arguments], env=environ, capture_output=True, text=True,
                            check=True, cwd="/")  # fmt: skip
    assert result.stdout.split() == [script, *arguments]


def test_an_active_environment_is_honoured(checkout: Path, tmp_path: Path) -> None:
    active = tmp_path / "active"
    shutil.copytree(checkout / ".venv", active)
    (active / "bin" / "python").write_text('#!/bin/sh\necho active "$@"\n')
    result = subprocess.run([BARE_PYTHON, str(checkout / "manage.py"), "up"], capture_output=True, text=True,
                            check=True, env={**os.environ, "VIRTUAL_ENV": str(active)})  # fmt: skip
    assert result.stdout.startswith("active ")


def test_a_command_before_the_first_start_says_what_to_do(tmp_path: Path) -> None:
    shutil.copy(ROOT / "manage.py", tmp_path)
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    result = subprocess.run([BARE_PYTHON, "-S", str(tmp_path / "manage.py"), "talk"], capture_output=True,
                            text=True, check=False, env=environ)  # fmt: skip
    assert result.returncode == 1
    assert "manage.py up" in result.stderr
    assert "Traceback" not in result.stderr
