"""Which modules a module of the page imports, and they in their turn. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Final

_IMPORTED: Final = re.compile(
    r"""^(?:import\s*|(?:import|export)\b[^'";]*?\bfrom\s*)['"](\.[^'"]+)['"]""", re.MULTILINE
)


def imported_by(name: str, read: Callable[[str], str]) -> list[str]:
    """Return the modules that a browser must have before it runs the one of this name, which comes first.

    ``read`` returns the text of a module by its name, which is its path below the static files.
    """
    found, unread = [name], [name]
    while unread:
        module = unread.pop(0)
        for path in _IMPORTED.findall(read(module)):
            other = posixpath.normpath(posixpath.join(posixpath.dirname(module), path))
            if other not in found:
                found.append(other)
                unread.append(other)
    return found
