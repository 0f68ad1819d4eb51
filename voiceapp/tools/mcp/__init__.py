"""MCP servers called from here.

hosting: the servers of one assistant → client: one server, over connection (HTTP) · messages, rules: what
may be called, and under which name (pure).
"""
