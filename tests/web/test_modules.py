"""What a module imports, in every way in which the page's modules spell it."""

from __future__ import annotations

import pytest

from voiceapp.web.modules import imported_by

LINES = [
    "import { a, b } from './other.js';",
    'import { a } from "./other.js";',
    "import * as all from './other.js';",
    "import './other.js';",
    "import {\n  a,\n  b,\n} from './other.js';",
    "export { a } from './other.js';",
    "export * from './other.js';",
]


@pytest.mark.parametrize("line", LINES)
def test_an_import_is_found_however_it_is_spelt(line: str) -> None:
    files = {"page/app.js": f"// @ts-check\n{line}\nwork();\n", "page/other.js": ""}
    assert imported_by("page/app.js", files.__getitem__) == ["page/app.js", "page/other.js"]


@pytest.mark.parametrize(
    "line",
    [
        "/** @typedef {import('./types.js').One} One */",
        "// import { a } from './old.js';",
        "const text = \"import { a } from './old.js';\";",
        "export const name = './old.js';",
        "import { a } from 'https://elsewhere.example/a.js';",
    ],
)
def test_what_only_looks_like_an_import_is_none(line: str) -> None:
    assert imported_by("app.js", {"app.js": line}.__getitem__) == ["app.js"]


def test_each_module_comes_once_however_many_need_it_and_in_whatever_circle() -> None:
    files = {
        "a.js": "import './in/b.js';\nimport './c.js';",
        "in/b.js": "import '../c.js';\nimport '../a.js';",
        "c.js": "import './in/b.js';",
    }
    assert imported_by("a.js", files.__getitem__) == ["a.js", "in/b.js", "c.js"]
