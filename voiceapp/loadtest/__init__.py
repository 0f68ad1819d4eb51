"""The relay measured against a bare one.

measure: both relays in turn → clients (pages), service (a Realtime service), bare (the other relay), each a
process → figures: what may be said of it (pure).
"""
