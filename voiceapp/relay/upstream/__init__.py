"""One Realtime service.

target: its address and key → service_socket: one WebSocket, in turns → connection: decoded →
link: dialled, dialled again, renewed.
"""
