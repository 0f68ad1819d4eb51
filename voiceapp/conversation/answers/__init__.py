"""Answers of the model; pure.

responses: one at a time, in turn, and how each ended · speaker: on their way to the loudspeaker, cut and
truncated there · playback: what was received, played and never heard · heard: which words those were.
"""
