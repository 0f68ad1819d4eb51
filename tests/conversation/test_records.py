"""The order of a conversation's items, whatever order they were seen in."""

from __future__ import annotations

import random

import pytest

from tests.parts.kept_records import item
from voiceapp.conversation.records import in_order


@pytest.mark.parametrize(
    ("links", "order"),
    [
        ([("b", "a"), ("a", None), ("c", "b")], "abc"),
        ([("a", None), ("c", "a"), ("b", "a")], "acb"),
        ([("a", None), ("x", "gone"), ("y", "x"), ("b", "a")], "abxy"),
        ([("a", "c"), ("b", "a"), ("c", "b")], "abc"),
        ([("a", "a"), ("b", "a")], "ab"),
        ([("a", None), ("b", None)], "ab"),
        ([], ""),
    ],
)
def test_order_of_items(links: list[tuple[str, str | None]], order: str) -> None:
    assert "".join(record.item_id for record in in_order([item(*link) for link in links])) == order


def test_order_of_a_long_conversation_seen_in_any_order() -> None:
    records = [item(str(n), str(n - 1) if n else None) for n in range(5000)]
    shuffled = random.sample(records, len(records))
    assert in_order(shuffled) == records
