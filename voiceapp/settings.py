"""Django's settings, the only reader of the environment.

What the product itself can be told is in ``voiceapp.config.SETTINGS``; ``VOICE`` holds it. A setting that
cannot be read keeps its default here, and the system checks refuse to start with it.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from voiceapp.config import Problem, VoiceConfig
from voiceapp.datafolder.keys import kept_key
from voiceapp.errors import ConfigurationError
from voiceapp.records.setup.database import database

BASE_DIR = Path(__file__).resolve().parent.parent


def _kept_or_throwaway(folder: Path, name: str, problems: list[Problem]) -> str:
    try:
        return kept_key(folder, name)
    except OSError as error:
        problems.append(
            ("VOICEAPP_DATA_DIR", f"cannot keep the file {name} ({error.strerror})",
             "Name a folder that this user may write to.")
        )  # fmt: skip
        return secrets.token_urlsafe(48)


VOICE, VOICE_PROBLEMS = VoiceConfig.load(os.environ)
# A relative folder is the project's, so that every command finds the same data wherever it is run.
VOICE = replace(VOICE, data_dir=BASE_DIR / VOICE.data_dir)
VOICE = replace(
    VOICE,
    secret_key=VOICE.secret_key or _kept_or_throwaway(VOICE.data_dir, "secret_key", VOICE_PROBLEMS),
    engine_api_key=VOICE.engine_api_key or _kept_or_throwaway(VOICE.data_dir, "engine_key", VOICE_PROBLEMS),
)
VOICE_PROBLEMS += VOICE.problems()

SECRET_KEY = VOICE.secret_key
DEBUG = VOICE.debug
ALLOWED_HOSTS = [host.strip() for host in VOICE.allowed_hosts.split(",") if host.strip()]
_TRUSTED = [origin.strip() for origin in VOICE.trusted_origins.split(",") if origin.strip()]

INSTALLED_APPS = [
    # Before staticfiles, whose runserver it replaces.
    "voiceapp.web",
    "servestatic",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "voiceapp.tools",
    "voiceapp.records",
]

MIDDLEWARE = [
    "voiceapp.web.headers.SecurityHeaders",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "voiceapp.urls"
ASGI_APPLICATION = "voiceapp.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

try:
    DATABASES: dict[str, dict[str, Any]] = {"default": database(VOICE.database_url, VOICE.data_dir)}
except ConfigurationError as _error:
    VOICE_PROBLEMS.append(("DATABASE_URL", "cannot be used", _error.message))
    DATABASES = {"default": database("", VOICE.data_dir)}
if VOICE.redis_url and find_spec("channels_redis") is not None:
    # Publish and subscribe: it comes back by itself when Redis does, and keeps nothing for nobody.
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [VOICE.redis_url], "prefix": "voiceapp"},
        },
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "/static/"
STATIC_ROOT = VOICE.data_dir / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "voiceapp.web.static_files.StaticFiles"},
}
# What has no digest in its name may change.
SERVESTATIC_MAX_AGE = 0
SERVESTATIC_KEEP_ONLY_HASHED_FILES = True
# What is packed has no comments: half of what the page's modules are.
SERVESTATIC_MINIFY = True
SERVESTATIC_ALLOW_ALL_ORIGINS = False
SERVESTATIC_USE_FINDERS = DEBUG
SERVESTATIC_AUTOREFRESH = DEBUG

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

# Browsers send a cookie to every port of a host: names of our own keep other local sites' apart.
SESSION_COOKIE_NAME = "voiceapp_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = VOICE.https
CSRF_COOKIE_NAME = "voiceapp_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_SECURE = VOICE.https
CSRF_TRUSTED_ORIGINS = _TRUSTED

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if VOICE.https:
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "filters": {
        "lost lines": {"()": "voiceapp.serving.log_filters.LostLines"},
        "no requests": {"()": "voiceapp.serving.log_filters.NoRequests"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {
        "voiceapp": {"handlers": ["console"], "level": "INFO", "propagate": True},
        "asyncio": {"filters": ["lost lines"]},
        "uvicorn.error": {"filters": ["no requests"]},
        # What Django fails at, such as a page that answered 500, with its traceback.
        "django": {"handlers": ["console"], "level": "ERROR", "propagate": True},
    },
    "root": {"handlers": [], "level": "WARNING"},
}
