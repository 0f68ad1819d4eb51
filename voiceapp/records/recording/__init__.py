"""The sound of sessions.

recorder: both sides on one clock → journal: WAV that survives a crash → archive: one FLAC, made afterwards.
"""
