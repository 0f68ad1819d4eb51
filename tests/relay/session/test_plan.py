"""What a live session begins with."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.conf import settings

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.config import UpstreamKind
from voiceapp.records.store.entries import OpenedSession
from voiceapp.relay.session.plan import SessionPlan, with_captions_of
from voiceapp.relay.upstream.target import Target

ADA = AssistantConfig(slug="ada", name="Ada", transcription={"language": "en"})


def target(*, captions: bool = True) -> Target:
    return Target(UpstreamKind.EMBEDDED, "ws://localhost", captions=captions)


@pytest.mark.parametrize(("taken_over_ms", "moved", "begins_ms"), [(None, False, 0), (0, True, 0),
                                                                   (61_000, True, 61_000)])  # fmt: skip
def test_a_session_of_another_process_goes_on_where_it_was(
    taken_over_ms: int | None, moved: bool, begins_ms: int
) -> None:
    opened = OpenedSession(session_id=uuid4(), assistant=ADA, taken_over_ms=taken_over_ms)
    plan = SessionPlan(opened=opened, user_id=1, config=settings.VOICE, target_of=lambda _: target())
    assert (plan.moved, plan.begins_ms) == (moved, begins_ms)


def test_captions_are_asked_for_only_where_the_service_makes_them() -> None:
    assert with_captions_of(ADA, target()) is ADA
    without = with_captions_of(ADA, target(captions=False))
    assert (without.transcription, without.slug) == (None, "ada")
