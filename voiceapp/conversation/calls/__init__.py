"""Calls of tools in one conversation; pure.

flow: every call from its beginning to the one response after it, on functions (run here), mcp (run by the
service), approvals (the user is asked first) and shown (the four events for the page).
"""
