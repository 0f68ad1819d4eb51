"""The pages, the server and its commands.

views, recordings, signin (models): pages · headers: their policy · checks: faults of settings in words ·
server: Uvicorn as ``up`` runs it · management/: the commands.
"""
