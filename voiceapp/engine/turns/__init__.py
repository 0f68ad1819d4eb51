"""Turns in speech; pure.

detector: from probabilities of speech to started, paused and stopped · endpointing: whether a sentence is
over, by its words.
"""
