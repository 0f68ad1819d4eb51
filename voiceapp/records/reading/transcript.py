"""A kept session as lines to read, in the conversation's order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from voiceapp.conversation.records import in_order
from voiceapp.records.display import inert
from voiceapp.records.models import Item, Session


@dataclass(frozen=True, kw_only=True)
class TranscriptLine:
    """One item as it is shown. All text is inert but for markup.

    ``text`` is everything that was said; where the answer was interrupted, ``heard_text`` and
    ``unheard_text`` are its two parts and ``cut_ms`` is when, else they are ``None``, ``""`` and ``None``.
    ``kind`` is the item's type: ``message``, ``function_call``, ``function_call_output`` and so on.
    ``speaker`` is the name of the assistant whose line it is, empty for the user's.
    ``not_transcribed``: speech that no words are known of, though words were due.
    """

    item_id: str
    kind: str
    role: str
    text: str
    heard_text: str | None
    unheard_text: str
    cut_ms: int | None
    transcript_status: str
    not_transcribed: bool
    speaker: str
    modality: str
    status: str
    started_ms: int


def lines(session: Session, *, system: bool = False) -> list[TranscriptLine]:
    """Return a session's lines; those of the operator only where ``system`` is true.

    The operator's are those of the role ``system``, and the lists of what MCP servers have.
    """
    over = session.ended_at is not None
    items: Iterable[Item] = in_order(session.items.order_by("id"))
    name = session.assistant_name
    return [_line(item, name, over=over) for item in items if system or not _is_operators(item)]


def _is_operators(item: Item) -> bool:
    return item.role == "system" or item.type == "mcp_list_tools"


def _line(item: Item, name: str, *, over: bool) -> TranscriptLine:
    text = item.generated_text or _text_of(item.type, item.raw)
    text = inert(_output_in_words(text) if item.type == "function_call_output" else text)
    heard = None if item.heard_text is None else inert(item.heard_text)
    # A transcript that is still due when the session is over never comes.
    failed = item.transcript_status == "failed" or (over and item.transcript_status == "pending")
    return TranscriptLine(
        item_id=item.item_id,
        kind=item.type,
        role=item.role,
        text=text,
        heard_text=heard,
        unheard_text=_rest(text, heard),
        cut_ms=item.cut_ms,
        transcript_status="failed" if failed else item.transcript_status,
        not_transcribed=failed and not text,
        speaker="" if item.role == "user" else inert(item.speaker) or name,
        modality=item.modality,
        status=item.status,
        started_ms=item.started_ms,
    )


def _rest(text: str, heard: str | None) -> str:
    if heard is None:
        return ""
    # A service may give the final text anew; what was heard of the earlier one is all that is known then.
    return text[len(heard) :] if text.startswith(heard) else ""


def _text_of(kind: str, raw: Any) -> str:
    """Return what a tool's item says, which is not speech and so not in ``generated_text``."""
    if not isinstance(raw, dict):
        return ""
    if kind in ("function_call", "mcp_call"):
        return f"{raw.get('name', '')}({_plain(raw.get('arguments', ''))})"
    if kind == "mcp_approval_request":
        return f"{raw.get('server_label', '')}: {raw.get('name', '')}({_plain(raw.get('arguments', ''))})"
    if kind == "mcp_approval_response":
        return "allowed" if raw.get("approve") else "not allowed"
    if kind == "mcp_list_tools":
        tools = raw.get("tools")
        names = [str(name) for name in tools] if isinstance(tools, list) else []
        return f"{raw.get('server_label', '')}: {', '.join(names)}"
    return _plain(raw.get("output", "")) if kind == "function_call_output" else ""


def _output_in_words(output: str) -> str:
    """Return a function's output; of the failures that models are told as JSON, the sentence."""
    # Whatever a program brought may be here, of any depth and kind.
    with suppress(ValueError, RecursionError, TypeError, KeyError):
        message = json.loads(output)["error"]["message"]
        if isinstance(message, str):
            return f"failed: {message}"
    return output


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
