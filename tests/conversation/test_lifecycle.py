"""How far a conversation is."""

from __future__ import annotations

import pytest

from voiceapp.conversation.lifecycle import Lifecycle, State


def test_what_the_page_sends_is_kept_until_the_service_took_the_settings() -> None:
    lifecycle = Lifecycle()
    unsettled = {}
    for state in State:
        lifecycle.enter(state)
        unsettled[state] = lifecycle.unsettled
    assert unsettled == {
        State.WAITING: True,
        State.CONFIGURING: True,
        State.READY: False,
        State.ENDED: False,
    }


@pytest.mark.parametrize("state", State)
def test_what_has_ended_stays_so(state: State) -> None:
    lifecycle = Lifecycle()
    lifecycle.enter(State.ENDED)
    lifecycle.enter(state)
    assert lifecycle.state is State.ENDED
