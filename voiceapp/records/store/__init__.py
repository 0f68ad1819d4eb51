"""Writing what was said, and reading it for a session that goes on.

store: sessions begin and end → writer: one thread, in batches → rows · takeover: between processes ·
history, entries (pure): a conversation's order · search, notes, tokens.
"""
