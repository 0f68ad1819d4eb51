"""A history in the order that services take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.text.history import NO_OUTPUT, paired
from voiceapp.text.provider import Called, HistoryItem, Returned, Said

HI = Said("user", "Hi")
A, B = Called("a", "f", "{}"), Called("b", "g", "{}")
OUT_A, OUT_B = Returned("a", "1"), Returned("b", "2")


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ((HI, A, OUT_A, HI), (HI, A, OUT_A, HI)),
        ((A, HI, OUT_A), (A, OUT_A, HI)),
        ((A, HI), (A, Returned("a", NO_OUTPUT), HI)),
        ((A, B, HI, OUT_B, OUT_A), (A, B, OUT_A, OUT_B, HI)),
        ((A, OUT_A, B, OUT_B), (A, OUT_A, B, OUT_B)),
        ((A, B, OUT_B), (A, B, Returned("a", NO_OUTPUT), OUT_B)),
        ((OUT_A, HI, A), (HI, A, OUT_A)),
        ((OUT_A, HI), (HI,)),
        ((A, OUT_A, Returned("a", "again")), (A, OUT_A)),
        # An id that comes twice.
        ((A, OUT_A, A, HI, Returned("a", "3")),
         (A, OUT_A, Called("a_2", "f", "{}"), Returned("a_2", "3"), HI)),
        ((A, A, OUT_A, Returned("a", "3")),
         (A, Called("a_2", "f", "{}"), OUT_A, Returned("a_2", "3"))),
        # Arguments that are no object.
        ((Called("a", "f", ""), OUT_A), (A, OUT_A)),
        ((Called("a", "f", "[2"), OUT_A), (Called("a", "f", '{"arguments": "[2"}'), OUT_A)),
        ((), ()),
    ],
)  # fmt: skip
def test_each_call_is_followed_by_its_output(
    history: tuple[HistoryItem, ...], expected: tuple[HistoryItem, ...]
) -> None:
    assert paired(history) == expected


IDS = st.sampled_from(["a", "b", "x" * 40])
ITEMS = (
    st.builds(Said, st.sampled_from(["user", "assistant", "system"]), st.text(max_size=3))
    | st.builds(Called, IDS, st.just("f"), st.sampled_from(["", "{}", "no"]))
    | st.builds(Returned, IDS, st.text(max_size=3))
)


@given(st.lists(ITEMS, max_size=12))
def test_what_is_in_order_stays_as_it_is_and_nothing_said_is_lost(history: list[HistoryItem]) -> None:
    once = paired(history)
    assert paired(once) == once
    assert [item for item in once if isinstance(item, Said)] == [
        item for item in history if isinstance(item, Said)
    ]
    calls = [item.call_id for item in once if isinstance(item, Called)]
    assert len(set(calls)) == len(calls) == sum(isinstance(item, Called) for item in history)
    assert sorted(item.call_id for item in once if isinstance(item, Returned)) == sorted(calls)
    assert all(len(call_id) <= 40 for call_id in calls)
