"""The page's files as browsers get them: named by their content, compressed, and made once.

A name that carries a digest of its content may be kept for ever. The digests stand in the modules' own
``import`` lines as well, so that a module and what it imports always are of one version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import brotli
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from servestatic.compress import Compressor
from servestatic.storage import CompressedManifestStaticFilesStorage

BROTLI_QUALITY: Final = 9
"""A tenth of the time of 11, for files that are 5 % larger: a first start must not take seconds longer."""
_MADE_OF: Final = "made-of.json"


class _Compressor(Compressor):  # type: ignore[misc]  # ServeStatic has no types.
    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        return bytes(brotli.compress(data, quality=BROTLI_QUALITY))


class StaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Names, rewrites and compresses what ``collectstatic`` collects."""

    support_js_module_import_aggregation = True
    # One pass for each level of imports; of those there are six.
    max_post_process_passes = 20
    keep_intermediate_files = False
    # Without ``import("…")``, which the page has in its comments alone: types may go in a circle.
    _js_module_import_aggregation_patterns = (
        "voiceapp/*.js",
        CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns[1][:3],
    )

    def create_compressor(self, **options: Any) -> Compressor:
        """Return what compresses."""
        return _Compressor(**options)

    def stored_name(self, name: str) -> str:
        """Return the name with its digest; the plain one where nothing was collected."""
        known: dict[str, str] = self.hashed_files
        return known.get(self.hash_key(self.clean_name(name)), name)


def collect() -> bool:
    """Collect the static files where they changed since the last time; return whether they had."""
    made_of = Path(settings.STATIC_ROOT) / _MADE_OF
    now = _sources()
    if made_of.exists() and made_of.read_text() == now:
        return False
    made_of.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0)
    made_of.write_text(now)
    return True


def _sources() -> str:
    """Return what the files to be collected are known by: where they are, their sizes and times."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in _found():
        stat = path.stat()
        digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return json.dumps({"sources": digest.hexdigest()})


def _found() -> Iterator[Path]:
    for finder in get_finders():
        for path, storage in finder.list([]):
            yield Path(storage.path(path))
