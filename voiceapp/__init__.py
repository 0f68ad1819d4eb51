"""A realtime voice application on Django Channels: people talk with an AI in the browser.

page ──▶ relay ──▶ Realtime service: Azure's, or the engine here · conversation: what both say to each other
programs ──▶ gateway, nnrp ──▶ text ──▶ who thinks · records ──▶ what was said, for users and the admin
"""
