"""Samples and their formats; pure.

formats: PCM16 and G.711 by all their names · g711: the two laws · pcm: levels · resample: between rates and
laws, without seams.
"""
