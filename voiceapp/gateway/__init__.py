"""The text engine over HTTP and WebSocket, for programs.

generate: /v1/generate by contract (pure) · chat: chat completions at Azure's addresses · host_consumer:
/ws/model-host/, where users connect a model of their own.
"""
