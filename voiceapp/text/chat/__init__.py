"""Chat completions services.

service: one over HTTP · provider: a conversation thinks by it · local: the other way round, a provider as
such a service · request, result: what is read of bodies and made of chunks (pure).
"""
