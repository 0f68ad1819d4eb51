"""The Responses API as hosts speak it: what is asked is read again as it was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from voiceapp.text.history import paired
from voiceapp.text.model_host import responses_api
from voiceapp.text.provider import Called, FunctionTool, ReplyRequest, Returned, Said

TEXT = st.text(max_size=20)
NAMES = st.sampled_from(["look", "tell", "buy"])
ITEMS = (
    st.builds(Said, st.sampled_from(["system", "user", "assistant"]), TEXT)
    | st.builds(Called, TEXT, NAMES, TEXT)
    | st.builds(Returned, TEXT, TEXT)
)
REQUESTS = st.builds(
    ReplyRequest,
    TEXT,
    st.lists(ITEMS, max_size=5).map(tuple),
    st.lists(st.builds(FunctionTool, NAMES, TEXT, st.just({"type": "object"})), max_size=3).map(tuple),
    st.sampled_from(["auto", "none", "required"]) | NAMES,
    several_calls=st.booleans(),
    spoken=st.just(False),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["message", "user", "text"]) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.just("type"), inner, max_size=3),
    max_leaves=8,
)


@given(REQUESTS)
def test_a_request_is_read_as_it_was_asked(request: ReplyRequest) -> None:
    fields = json.loads(json.dumps(responses_api.request_fields(request, "m", {})))
    assert responses_api.read_request(fields) == replace(request, history=paired(request.history))


@given(st.dictionaries(st.sampled_from(["instructions", "input", "tools", "toolChoice"]), JSON))
def test_whatever_is_asked_something_is_read(fields: dict[str, Any]) -> None:
    assert isinstance(responses_api.read_request(fields), ReplyRequest)
