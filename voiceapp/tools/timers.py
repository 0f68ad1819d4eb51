"""Timers that speak when they are due."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from voiceapp.tools.registry import ToolContext, tool

MAX_TIMER_S = 24 * 3600
_Label = Annotated[str, Meta(max_length=60, description="What it is for, such as tea; may be left out")]


@tool(timeout_s=5)
async def set_timer(
    seconds: Annotated[int, Meta(ge=1, le=MAX_TIMER_S, description="How long, in seconds")],
    context: ToolContext,
    label: _Label = "",
) -> str:
    """Set a timer. It returns at once; the user is told in this conversation when the time is over."""
    context.session.timers.start(label.strip(), seconds)
    return f"The timer for {spoken_duration(seconds)}{_about(label)} is set."


@tool(timeout_s=5)
async def list_timers(context: ToolContext) -> str:
    """Tell which timers run, and how long each still takes."""
    running = context.session.timers.running()
    if not running:
        return "No timer is running."
    listed = [f"{spoken_duration(timer.left_s)} left{_about(timer.label)}" for timer in running]
    return f"{len(running)} timer{'s run' if len(running) > 1 else ' runs'}: {'; '.join(listed)}."


@tool(timeout_s=5)
async def cancel_timer(context: ToolContext, label: _Label = "") -> str:
    """Cancel the timer with this label, or all timers where none is given."""
    stopped = context.session.timers.cancel(label.strip())
    if not stopped:
        return "There is no such timer." if label.strip() else "No timer is running."
    return f"{len(stopped)} timers were cancelled." if len(stopped) > 1 else "The timer was cancelled."


def spoken_duration(seconds: float) -> str:
    """Return a duration as people say it, in whole seconds: "1 hour and 5 minutes"."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for size, name in ((3600, "hour"), (60, "minute"), (1, "second")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    if not parts:
        return "less than a second"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _about(label: str) -> str:
    return f" for {label.strip()}" if label.strip() else ""
