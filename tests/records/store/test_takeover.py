"""A session's row says whose it is; of several processes that take it only one gets it."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tests.parts.clock import pass_time
from tests.parts.waits import PATIENCE_S
from voiceapp.conversation.records import ItemRecord
from voiceapp.errors import VoiceAppError
from voiceapp.records.models import Assistant, Session
from voiceapp.records.store import store, takeover
from voiceapp.records.store.writer import StoreUnavailable, writer

pytestmark = pytest.mark.django_db(transaction=True)

OTHER = str(UUID(int=1))
"""The name of a process that this machine does not know."""


async def begun(user: User, **changes: Any) -> UUID:
    """Return a session with one item, changed as if another process had it."""
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")
    item = ItemRecord(
        item_id="u", previous_item_id=None, type="message", role="user", generated_text="Hi.", raw={}
    )
    writer().save_item(opened.session_id, item)
    await writer().flush()
    await Session.objects.filter(id=opened.session_id).aupdate(**{"process": OTHER, **changes})
    return opened.session_id


async def refused(session_id: UUID, user: User, owner: str) -> bool:
    try:
        await takeover.take(session_id, user.pk, owner)
    except VoiceAppError as error:
        return error.code == "session_not_found"
    return False


async def test_a_session_goes_on_where_it_was_taken(user: User) -> None:
    session_id = await begun(user, started_at=timezone.now() - timedelta(seconds=5))
    assert await takeover.owner_of(session_id, user.pk) == (OTHER, False)
    opened = await takeover.take(session_id, user.pk, OTHER)
    assert [item.generated_text for item in opened.earlier[-1].items] == ["Hi."]
    row = await Session.objects.aget(id=session_id)
    since_ms = (timezone.now() - row.started_at) / timedelta(milliseconds=1)
    assert 5_000 <= (opened.taken_over_ms or 0) <= since_ms
    assert (row.process, row.ended_at) == (takeover.own_name(), None)


async def test_only_the_first_gets_it(user: User) -> None:
    session_id = await begun(user)
    assert not await refused(session_id, user, OTHER)
    assert await refused(session_id, user, OTHER)


async def test_nobody_else_gets_it(user: User) -> None:
    session_id = await begun(user)
    eve = await User.objects.acreate(username="eve")
    assert await refused(session_id, eve, OTHER)
    for one, whom in ((session_id, eve), (uuid4(), user)):
        with pytest.raises(VoiceAppError, match="no such session"):
            await takeover.owner_of(one, whom.pk)


@pytest.mark.parametrize(
    ("reason", "expected", "ago_s", "free"),
    [
        ("moved", True, 1, True),
        ("server_stopped", False, 1, True),
        ("moved", True, 3600, False),
        # A server that was stopped in order told its pages so.
        ("server_stopped", True, 1, False),
        ("hung_up", True, 1, False),
    ],
)
async def test_what_was_let_go_may_be_taken_for_a_while(
    user: User, reason: str, expected: bool, ago_s: int, free: bool
) -> None:
    ended = timezone.now() - timedelta(seconds=ago_s)
    session_id = await begun(user, ended_at=ended, end_reason=reason, expected=expected)
    assert await refused(session_id, user, "") is not free


@pytest.mark.parametrize("gives_up", ["the page", "the server"])
async def test_what_is_taken_for_a_page_that_is_not_waited_for_may_be_taken_again(
    user: User, gives_up: str
) -> None:
    session_id = await begun(user)
    ready = threading.Event()
    writer().post(lambda: ready.wait(PATIENCE_S))
    taking = asyncio.create_task(takeover.take(session_id, user.pk, OTHER))
    await pass_time(0)
    owner = writer().post(lambda: Session.objects.get(id=session_id).process)
    if gives_up == "the page":
        taking.cancel()
    else:
        await pass_time(20)
    with pytest.raises((asyncio.CancelledError, StoreUnavailable)):
        await taking
    ready.set()
    assert await asyncio.wrap_future(owner) == takeover.own_name(), "it was taken all the same"
    assert await takeover.owner_of(session_id, user.pk) == ("", True)
    assert not await refused(session_id, user, "")


async def test_a_process_that_lost_a_session_neither_ends_it_nor_thinks_it_its_own(user: User) -> None:
    session_id = await begun(user)
    await store.close_session(session_id, reason="hung_up", expected=True, duration_ms=1)
    assert (await Session.objects.aget(id=session_id)).ended_at is None
    opened = await store.open_session(user_id=user.pk, assistant_slug=None, upstream="embedded")

    def lost() -> set[UUID]:
        return takeover.lost({session_id, opened.session_id})

    assert await writer().call(lost) == {session_id}


async def test_the_recording_of_the_first_process_stays_where_the_second_makes_none(user: User) -> None:
    session_id = await begun(user, recording="recordings/x.flac")
    await takeover.take(session_id, user.pk, OTHER)
    await store.close_session(session_id, reason="hung_up", expected=True, duration_ms=1)
    row = await Session.objects.aget(id=session_id)
    assert (row.end_reason, row.recording) == ("hung_up", "recordings/x.flac")


async def test_secrets_that_are_not_kept_come_from_the_assistant(user: User) -> None:
    address = "https://docs.example.org/mcp?key=k"
    secret = {"server_label": "docs", "server_url": address, "authorization": "s"}
    gone = {"server_label": "gone", "server_url": "https://gone.example.org/mcp", "authorization": "s"}
    assistant = await Assistant.objects.acreate(slug="m", name="M", mcp_servers=[secret, gone])
    opened = await store.open_session(user_id=user.pk, assistant_slug="m", upstream="embedded")
    await Session.objects.filter(id=opened.session_id).aupdate(process=OTHER)
    assistant.mcp_servers = [secret]
    await assistant.asave()
    again = await takeover.take(opened.session_id, user.pk, OTHER)
    assert [(s.server_label, s.server_url, s.authorization) for s in again.assistant.mcp_servers] == [
        ("docs", address, "s")
    ]
