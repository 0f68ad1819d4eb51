"""The evaluator's button on the admin's page of a session."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.contrib.admin.views.decorators import staff_member_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from voiceapp.config import voice_config
from voiceapp.errors import TextEngineError, TextEngineTimeout
from voiceapp.records.reading.sessions import to_review
from voiceapp.records.store import store
from voiceapp.review import evaluation
from voiceapp.review.evaluation import Judgement
from voiceapp.review.remarks import Remark, said_in
from voiceapp.text import providers

TIME_S: Final = 120.0
"""How long a judgement may take; the administrator's browser waits for it."""


@require_POST
@staff_member_required
def evaluate(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Judge a session by the form's ``criteria`` and keep the judgement, or tell what went wrong."""
    user = request.user
    if not isinstance(user, User) or not user.has_perm("records.view_session"):
        raise PermissionDenied
    kept = to_review(session_id)
    if kept is None:
        raise Http404
    try:
        criteria = evaluation.read_criteria(request.POST.get("criteria", ""))
        judged = async_to_sync(_judge)(said_in(kept.lines), criteria)
        store.save_evaluation(session_id, user.pk, asdict(judged))
    except TextEngineError as error:
        messages.error(request, error.message)
    return redirect("admin:records_session_change", session_id)


async def _judge(said: list[Remark], criteria: list[str]) -> Judgement:
    try:
        async with asyncio.timeout(TIME_S):
            return await evaluation.judge(said, criteria, await providers.completions(voice_config()))
    except TimeoutError:
        message = f"The evaluator took longer than {TIME_S:g} seconds."
        raise TextEngineTimeout(message, code="text_engine_timeout") from None
