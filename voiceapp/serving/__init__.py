"""Plain ASGI parts that several servers of this product share.

scope: what a connection says of who comes, fairness between connections, refusals before the upgrade ·
exchange: HTTP for programs, streams that end in order · sse: server-sent events as text (pure).
"""
