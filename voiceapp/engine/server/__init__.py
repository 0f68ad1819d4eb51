"""The engine's sockets and addresses.

consumer: /openai/v1/realtime and /openai/realtime → connection: the session's tasks · credentials,
client_secrets (client_secret_views): who may come in · faults: failures that a client orders.
"""
