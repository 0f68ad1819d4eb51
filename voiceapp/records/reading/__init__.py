"""Kept sessions as they are shown.

sessions: which of them, for whom · transcript: one as lines · assistants: what the system checks ask.
"""
