"""Sentences as people say and write them, whoever made them; pure.

text | tools | engine ──▶ punctuation   how a sentence ends
tools | records ──▶ words   which words a text has
everybody ──▶ zones   time zones by their names, moments in words
"""
