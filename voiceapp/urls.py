"""Addresses of the pages."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, JsonResponse
from django.urls import path

from voiceapp.engine.inference.loading import models
from voiceapp.engine.server import client_secret_views
from voiceapp.review.views import evaluate
from voiceapp.web import recordings, views
from voiceapp.web.manifest import manifest


async def health(request: HttpRequest) -> JsonResponse:
    """Tell a load balancer that the process answers, and how far the embedded engine is."""
    return JsonResponse({"status": "ok", "engine": models().state().status})


urlpatterns = [
    path("", views.index, name="index"),
    path("signin/<str:token>", views.sign_in, name="sign-in"),
    path("login/", views.LogIn.as_view(), name="login"),
    path("logout/", views.LogOut.as_view(), name="logout"),
    path("check/", views.check, name="check"),
    path("sessions/", views.sessions, name="sessions"),
    path("sessions/<uuid:session_id>/", views.session, name="session"),
    path("sessions/<uuid:session_id>/recording.flac", recordings.recording, name="recording"),
    # The admin's pages name no icon, and browsers then ask for this one.
    path("favicon.ico", views.icon),
    path("manifest.webmanifest", manifest, name="manifest"),
    path("healthz", health, name="health"),
    path("openai/v1/realtime/client_secrets", client_secret_views.client_secrets, name="client-secrets"),
    path("openai/realtime/sessions", client_secret_views.preview_session, {"kind": "session"}),
    path(
        "openai/realtime/transcription_sessions",
        client_secret_views.preview_session,
        {"kind": "transcription_session"},
    ),
    path("admin/records/session/<uuid:session_id>/evaluate/", evaluate, name="evaluate-session"),
    # The admin's own would ask nobody.
    path("admin/logout/", views.LogOut.as_view()),
    path("admin/", admin.site.urls),
]

handler400 = views.bad_request
handler404 = views.not_found
