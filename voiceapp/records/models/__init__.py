"""The tables.

assistants (with http_tools: services whose operations they may call) · sessions (items, responses, tool
calls, evaluations) · notes of users · tokens of programs. Only ``records.store`` writes those of sessions.
"""

from voiceapp.records.models.assistants import Assistant
from voiceapp.records.models.http_tools import HttpToolSet
from voiceapp.records.models.notes import Note
from voiceapp.records.models.sessions import Evaluation, Item, Response, Session, Sessions, ToolCall
from voiceapp.records.models.tokens import ApiToken, TokenUsage

__all__ = [
    "ApiToken", "Assistant", "Evaluation", "HttpToolSet", "Item", "Note", "Response", "Session", "Sessions",
    "TokenUsage", "ToolCall",
]  # fmt: skip
