"""The product's settings with a throw-away data folder and none of the caller's own settings."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import certifi

from voiceapp.config import SETTINGS

_folder = tempfile.mkdtemp(prefix="voiceapp-test-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
for _setting in SETTINGS:
    if _setting.name != "DATABASE_URL":
        os.environ.pop(_setting.name, None)
os.environ["VOICEAPP_DATA_DIR"] = _folder
# Nobody is called by TLS but with a certificate of the test's own. To read those of all the world takes 50
# ms, and every client of a service reads what this names.
_trusted = Path(_folder, "trusted.pem")
_trusted.write_text("".join(certifi.contents().partition("-----END CERTIFICATE-----\n")[:2]))
os.environ["SSL_CERT_FILE"] = str(_trusted)

from voiceapp.settings import *  # noqa: E402, F403
from voiceapp.settings import DATABASES, STATIC_ROOT, STORAGES  # noqa: E402

# A file, as in production: threads share it, and an in-memory database knows no write-ahead log.
if not os.environ.get("DATABASE_URL"):
    DATABASES["default"]["TEST"] = {"NAME": f"{_folder}/test.sqlite3"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# The pages name the files as they lie in the tree.
STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
SERVESTATIC_USE_FINDERS = True
STATIC_ROOT.mkdir(exist_ok=True)
