"""The built-in brain, which is no language model; deterministic.

brain: a reply → skills (what it can by itself), guide (this product, from guide.md), clauses, matching,
several, shipped: calls of tools by words → results: what they brought · numbers, repertoire, schemas.
"""
