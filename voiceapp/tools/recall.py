"""What was said in the user's earlier conversations."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from voiceapp.tools.registry import ToolContext, tool


@tool(timeout_s=15)
async def search_conversations(
    words: Annotated[str, Meta(min_length=1, max_length=200, description="Words that were said")],
    context: ToolContext,
) -> str:
    """Search the user's own earlier conversations for words that were said in them."""
    found = await context.session.past.search(words.strip())
    if not found:
        return f"Nothing was said about {words.strip()} in earlier conversations."
    told = " ".join(f"On {one.day}: {one.excerpt}" for one in found)
    return f"{len(found)} conversation{'s' if len(found) > 1 else ''} found. {told}"
