"""Operations of HTTP services as tools.

tools: the operations of one assistant · openapi → operation → schema: a document read, or refused in words
(pure) · request: one call as an HTTP request (pure).
"""
