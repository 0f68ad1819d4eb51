"""The pages. Templates live in ``templates/voiceapp``; each docstring names what its template is given."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import DisallowedHost
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.views import defaults
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.records.display import inert
from voiceapp.records.reading.sessions import (
    ended_session,
    own_session,
    own_sessions,
    session_before,
    sessions_after,
)
from voiceapp.records.reading.transcript import lines
from voiceapp.records.store.store import assistants_for_page
from voiceapp.records.threads import fresh_connections
from voiceapp.web.signin import knows_token, take_token

SOCKET_PATH: Final = "/ws/voice/"
ECHO_PATH: Final = "/ws/echo/"
RECENT: Final = 8
PAGE: Final = 25
MAX_HOST_CHARS: Final = 253
"""Longest name of a host (RFC 1035, 2.3.4)."""
_SPENT_LINK: Final = "link=spent"


@require_safe
def icon(request: HttpRequest) -> HttpResponse:
    """Show where the icon is to browsers that look for it at the usual place."""
    return redirect(static("voiceapp/mark.svg"))


@login_required
@never_cache
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the page to talk on, ``index.html``.

    ``page_config``: the dictionary for the page's script (socket, assistants, user, isAdmin, continues).
    ``recent``: the user's last sessions in which something was said, each with ``id``, ``title``,
    ``started_at``, ``duration``.
    ``continues`` (``?continue=ID``): the ended session of the user's own that the next one goes on from.
    """
    user = _user(request)
    config = {
        "socket": SOCKET_PATH,
        "assistants": [_offer(assistant) for assistant in assistants_for_page()],
        "user": user.get_username(),
        "isAdmin": user.is_staff,
    }
    earlier = None
    if (asked := request.GET.get("continue")) is not None:
        # Somebody else's, a live or an unknown one is not found.
        earlier = ended_session(user, _uuid(asked))
        if earlier is None:
            raise Http404
        slug = earlier.assistant.slug if earlier.assistant else ""
        began = earlier.started_at.isoformat()
        config["continues"] = {"id": str(earlier.id), "assistant": slug, "at": began}
    recent = own_sessions(user).with_something_said()[:RECENT]
    context = {"page_config": config, "recent": recent, "continues": earlier}
    return render(request, "voiceapp/index.html", context)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None


def _offer(assistant: AssistantConfig) -> dict[str, Any]:
    return {
        "slug": assistant.slug,
        "name": assistant.name,
        "input_format": assistant.input_format.value,
        "output_format": assistant.output_format.value,
        "push_to_talk": assistant.turn_detection is None,
        "voice": assistant.voice,
        "voices": list(assistant.offered_voices),
    }


@login_required
@never_cache
@require_safe
def sessions(request: HttpRequest) -> HttpResponse:
    """List the user's own sessions in which something was said, ``sessions.html``.

    ``page_obj``: a page (``?page=2``) of sessions, each with ``id``, ``title``, ``started_at``,
    ``duration``, ``times_said`` (by the user), ``ended_at`` (``None`` while it lives).
    """
    own = own_sessions(_user(request)).with_something_said()
    paginator = Paginator(own.with_times_said(), PAGE)
    page = paginator.get_page(request.GET.get("page"))
    return render(request, "voiceapp/sessions.html", {"page_obj": page})


@login_required
@never_cache
@require_safe
def session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Show one of the user's sessions as text, ``session.html``; somebody else's is not found.

    ``session``: as in the list. ``items``: ``records.reading.transcript.TranscriptLine`` in order, each with
    ``role``, ``text``, ``heard_text``, ``unheard_text``, ``cut_ms``, ``transcript_status``, ``kind``,
    ``not_transcribed``, ``speaker``. ``before``: the session that this one continues, if any; ``after``:
    those that continue it.
    """
    kept = own_session(_user(request), session_id)
    if kept is None:
        raise Http404
    context = {
        "session": kept,
        "items": lines(kept),
        "before": session_before(kept),
        "after": sessions_after(kept),
    }
    return render(request, "voiceapp/session.html", context)


@login_required
@never_cache
@require_safe
def check(request: HttpRequest) -> HttpResponse:
    """Show the page that checks whether talking will work on this device, ``check.html``.

    ``page_config``: the dictionary for the page's script (echo, socket).
    """
    config = {"echo": ECHO_PATH, "socket": SOCKET_PATH}
    return render(request, "voiceapp/check.html", {"page_config": config})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whoever opens a one-time link to press a button, ``sign_in.html``, which spends it.

    Chats, mail programs and browsers fetch links before people do, so fetching spends nothing. A spent link
    leads to the log-in page, which says so.
    """
    if request.method != "POST" and knows_token(token):
        return render(request, "voiceapp/sign_in.html")
    user = take_token(token) if request.method == "POST" else None
    if user is not None:
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    elif not request.user.is_authenticated:
        return redirect(f"{reverse('login')}?{_SPENT_LINK}")
    return redirect("index")


class LogIn(LoginView):
    """The log-in page, ``login.html``: ``form`` (username, password, ``non_field_errors``) and ``next``."""

    template_name = "voiceapp/login.html"
    redirect_authenticated_user = True

    def get_form(self, form_class: type[AuthenticationForm] | None = None) -> AuthenticationForm:
        """Say why a one-time link led here."""
        form = super().get_form(form_class)
        if not form.is_bound and self.request.META["QUERY_STRING"] == _SPENT_LINK:
            form.full_clean()
            form.cleaned_data = {}
            form.add_error(None, "This sign-in link was used already or is too old. python3 manage.py signin "
                                 "prints a new one; or sign in with a password.")  # fmt: skip
        return form


class LogOut(LogoutView):
    """Signing out; who has no password is asked first, ``sign_out.html``: their sign-in link is spent."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask, or sign out."""
        user = request.user
        asks = request.method == "POST" and request.POST.get("confirmed") != "yes"
        if asks and isinstance(user, User) and not user.has_usable_password():
            answer = render(request, "voiceapp/sign_out.html", {"user": user})
            add_never_cache_headers(answer)
            return answer
        return super().dispatch(request, *args, **kwargs)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say that there is no such page, ``404.html`` (given what Django gives it), with status 404."""
    # Django makes this page in any thread of a pool's, and its head asks the database who is signed in.
    with fresh_connections():
        return defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say that a request was odd, ``400.html``, or that this site has another name, with status 400.

    ``host``: the name that was asked for, where that is the reason, in ``MAX_HOST_CHARS``. ``setting``: what
    allows it, for those alone who sit at this very machine.
    """
    context: dict[str, Any] = {"host": None}
    if isinstance(exception, DisallowedHost):
        asked = str(request.META.get("HTTP_HOST", ""))[:MAX_HOST_CHARS]
        setting = "VOICEAPP_ALLOWED_HOSTS" if _is_local(request) else ""
        context = {"host": inert(asked), "setting": setting}
    # As for the page that is not found.
    with fresh_connections():
        return render(request, "400.html", context, status=400)


def _is_local(request: HttpRequest) -> bool:
    """Whether a request comes from this machine itself, and not through a proxy on it."""
    forwarded = any(name in request.META for name in ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR"))
    return not forwarded and request.META.get("REMOTE_ADDR") in ("127.0.0.1", "::1")


def _user(request: HttpRequest) -> User:
    user: AbstractBaseUser | AnonymousUser = request.user
    if not isinstance(user, User):
        raise Http404
    return user
