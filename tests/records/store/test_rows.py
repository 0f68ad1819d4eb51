"""Records as rows: text that every database can hold, and none that takes others along."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.kept_records import item, opened
from voiceapp.conversation.records import ToolCallRecord
from voiceapp.records.models import Item, ToolCall
from voiceapp.records.store import rows
from voiceapp.records.store.writer import writer

pytestmark = pytest.mark.django_db(transaction=True)


async def test_one_bad_record_takes_no_other_with_it(user: User, caplog: pytest.LogCaptureFixture) -> None:
    session_id = await opened(user)
    keep = writer()
    keep.save_item(session_id, item("a", generated_text="secret words"))
    keep.save_item(uuid4(), item("b", generated_text="secret words"))
    keep.save_item(session_id, item("c", cut_ms=2**80, generated_text="secret words"))
    endless: list[Any] = []
    endless.append(endless)
    keep.save_item(session_id, item("e", raw={"endless": endless}))
    keep.save_item(session_id, item("d"))
    await keep.flush()
    assert [row.item_id async for row in Item.objects.all()] == ["a", "d"]
    assert "b of session" in caplog.text
    assert "c of session" in caplog.text
    assert "e of session" in caplog.text
    assert "secret" not in caplog.text


async def test_text_that_databases_refuse_is_kept_as_near_as_can_be(user: User) -> None:
    session_id = await opened(user)
    keep = writer()
    keep.save_item(
        session_id, item("a", generated_text="a\0b\ud800c é 😀", raw={"k\0": ["\0", float("nan"), 1.5]})
    )
    keep.save_tool_call(session_id, ToolCallRecord(call_id="c", name="n" * 1000, arguments='{"x": "\0"}'))
    await keep.flush()
    row = await Item.objects.aget()
    assert row.generated_text.replace("\ufffd", "") == "a\u2400bc é 😀"
    assert row.raw == {"k\u2400": ["\u2400", None, 1.5]}
    call = await ToolCall.objects.aget()
    assert (call.arguments, len(call.name)) == ('{"x": "\u2400"}', 255)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("a\0b", "a\u2400b"),
        ("\ud800é", "\ufffdé"),
        ({"k\0": [float("inf"), float("-inf"), 1.5, True, None]}, {"k\u2400": [None, None, 1.5, True, None]}),
        (("a", 1), ["a", 1]),
        (b"bytes", b"bytes"),
    ],
)
def test_what_databases_refuse_is_replaced_wherever_it_stands(value: Any, kept: Any) -> None:
    assert rows.storable(value) == kept


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=10,
    )
)
def test_whatever_a_service_says_becomes_json_that_can_be_kept(value: Any) -> None:
    kept = rows.storable(value)
    text = json.dumps(kept, allow_nan=False, ensure_ascii=False)
    assert "\\u0000" not in json.dumps(kept)
    text.encode()
    assert rows.storable(kept) == kept
