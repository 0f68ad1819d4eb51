"""The product's own sources, parsed once for all tests of a process that read them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.parts.places import ROOT


@cache
def trees() -> Mapping[Path, ast.Module]:
    """Return the syntax tree of each file of the product, in the order of their paths."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "voiceapp").rglob("*.py"))}
