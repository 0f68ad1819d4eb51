"""The product's settings with a throw-away data folder and none of the caller's own settings."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from voiceapp.config import SETTINGS

_folder = tempfile.mkdtemp(prefix="voiceapp-test-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
for _setting in SETTINGS:
    if _setting.name != "DATABASE_URL":
        os.environ.pop(_setting.name, None)
os.environ["VOICEAPP_DATA_DIR"] = _folder

from voiceapp.settings import *  # noqa: E402, F403
from voiceapp.settings import DATABASES, STATIC_ROOT  # noqa: E402

# A file, as in production: threads share it, and an in-memory database knows no write-ahead log.
if not os.environ.get("DATABASE_URL"):
    DATABASES["default"]["TEST"] = {"NAME": f"{_folder}/test.sqlite3"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SERVESTATIC_USE_FINDERS = True
# Static files are looked up when they are asked for: to list them all takes longer than most tests, and every
# test client would do it.
SERVESTATIC_AUTOREFRESH = True
STATIC_ROOT.mkdir(exist_ok=True)
