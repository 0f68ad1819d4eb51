"""Sentences as people say and write them, whoever made them; pure.

text | tools | engine ──▶ punctuation   how a sentence ends
"""
