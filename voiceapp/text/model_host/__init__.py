"""Models that users connect over a socket of this server.

link: one host's socket, by notifications · provider: a conversation thinks by it · messages (the
notifications) and responses_api (what is asked), both pure.
"""
