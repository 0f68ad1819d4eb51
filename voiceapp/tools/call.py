"""Ending the call, and letting another assistant go on with it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from voiceapp.tools.registry import ToolContext, tool


@tool(timeout_s=5)
async def hang_up(context: ToolContext) -> str:
    """End the call when the user is done. Say goodbye in one sentence; the call ends once that was heard."""
    context.session.call.end_after_answer()
    return "Goodbye. The call ends now."


@tool(timeout_s=10)
async def hand_over(
    name: Annotated[str, Meta(min_length=1, max_length=100, description="The other assistant's name")],
    context: ToolContext,
) -> str:
    """Hand this conversation over to another assistant whom the user asks for by name."""
    taken_over_by = await context.session.call.hand_over(name.strip())
    return f"You are talking to {taken_over_by} now."
