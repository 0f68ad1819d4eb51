"""Static files are named by what they and all that they import contain, compressed, and made once."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
from django.templatetags.static import static
from django.test import override_settings

from tests.parts.places import ROOT
from tests.parts.static_files import put_static_files
from voiceapp.web.modules import imported_by
from voiceapp.web.static_files import collect

Urls = Callable[[], dict[str, str]]
FILES = {
    "app.js": "/** @typedef {import('./inner/part.js').Part} Part */\n"
    "import { part } from './inner/part.js';\n",
    "inner/part.js": "/** @typedef {import('../app.js').App} App */\nexport * from './leaf.js';\n"
    + "".join(f"// x\nexport const a{n} = {n};\n" for n in range(99)),
    "inner/leaf.js": "export const part = 1;\n",
    "page.css": "body { color: red; }\n" * 99,
}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources" / "voiceapp"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def root(sources: Path, tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Where the files are put."""
    folder = tmp_path / "static"
    storages = {**settings.STORAGES, "staticfiles": {"BACKEND": "voiceapp.web.static_files.StaticFiles"}}
    with override_settings(
        STATIC_ROOT=folder,
        STATICFILES_DIRS=[sources.parent],
        STATICFILES_FINDERS=["django.contrib.staticfiles.finders.FileSystemFinder"],
        STORAGES=storages,
    ):
        yield folder


def addresses() -> dict[str, str]:
    return {name: static(f"voiceapp/{name}") for name in FILES}


def test_a_name_changes_with_the_file_and_with_whatever_it_imports(sources: Path, root: Path) -> None:
    assert collect()
    before = addresses()
    assert all(
        re.fullmatch(r"/static/voiceapp/[a-z/]+\.[0-9a-f]{12}\.(js|css)", one) for one in before.values()
    )
    (sources / "inner/leaf.js").write_text("export const part = 2;\n")
    assert collect()
    changed = {name for name, address in addresses().items() if address != before[name]}
    assert changed == {"app.js", "inner/part.js", "inner/leaf.js"}
    # A page that was loaded before may still ask for what it was made of.
    assert all((root / one.removeprefix("/static/")).exists() for one in before.values())


def test_modules_import_one_another_by_the_names_under_which_they_are_kept(root: Path) -> None:
    collect()
    names = addresses()
    app = (root / names["app.js"].removeprefix("/static/")).read_text()
    assert f'from "./inner/{names["inner/part.js"].rpartition("/")[2]}";' in app
    assert "import('./inner/part.js').Part" in app


def test_what_did_not_change_is_not_made_again(sources: Path, root: Path) -> None:
    assert collect()
    assert not collect()
    (sources / "page.css").write_text("body { color: blue; }\n" * 99)
    assert collect()
    assert not collect()


def test_what_was_begun_and_broke_off_is_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("voiceapp.web.static_files.call_command", stopped)
        with pytest.raises(KeyboardInterrupt):
            collect()
    assert collect()


def test_each_file_lies_there_packed_and_without_its_comments(root: Path) -> None:
    collect()
    names = addresses()
    for name in ("inner/part.js", "page.css"):
        path = root / names[name].removeprefix("/static/")
        small = gzip.decompress(Path(f"{path}.gz").read_bytes())
        assert brotli.decompress(Path(f"{path}.br").read_bytes()) == small
        assert len(small) < path.stat().st_size
    leaf = names["inner/leaf.js"].rpartition("/")[2]
    packed = Path(root / names["inner/part.js"].removeprefix("/static/")).with_suffix(".js.br")
    text = brotli.decompress(packed.read_bytes()).decode()
    assert text.startswith(f'export*from"./{leaf}";')
    assert text.endswith("export const a98=98;")
    assert "x" not in text.replace("export", "")


def test_where_nothing_was_collected_files_have_their_plain_names(root: Path) -> None:
    assert addresses()["app.js"] == "/static/voiceapp/app.js"


def test_all_that_the_product_s_modules_import_is_there_under_its_name(tmp_path: Path) -> None:
    put_static_files(tmp_path)
    modules = list((tmp_path / "static" / "voiceapp").rglob("*.js"))
    assert len(modules) == len(list((ROOT / "static" / "voiceapp").rglob("*.js")))
    for path in modules:

        def read(name: str, folder: Path = path.parent) -> str:
            return (folder / name).read_text()

        [_, *needed] = imported_by(path.name, read)
        assert all(re.search(r"\.[0-9a-f]{12}\.js$", name) for name in needed)
