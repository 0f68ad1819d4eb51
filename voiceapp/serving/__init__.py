"""Plain ASGI parts that several servers of this product share.

scope: what a connection says of who comes, refusals before the upgrade · refusals: their lines in the log ·
socket_protocol, handshake: WebSockets under Uvicorn · consumer: the base of consumers · budget: how much a
peer may send (pure) · log_filters: what others log of connections ·
exchange: HTTP for programs, streams that end in order · sse: server-sent events as text (pure).
"""
