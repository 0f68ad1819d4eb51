"""One Realtime service.

target: its address and key → connection: one WebSocket, decoded → link: dialled, dialled again, renewed.
"""
