"""Before the first request.

database: which one, from its URL · preparing: migrations, repair · seeding: the first assistant.
"""
