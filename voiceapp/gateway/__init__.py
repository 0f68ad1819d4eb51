"""The text engine's gateway: ``POST /v1/generate`` and ``POST /v1/generate/stream``."""
