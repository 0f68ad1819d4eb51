"""What is kept: assistants, sessions, notes, tokens, and sound.

store/ writes the tables of models/ · recording/ writes sound · reading/ answers pages and reviews · admin/
is the Django admin · setup/ prepares the database · display, validation, threads: what these share.
"""
