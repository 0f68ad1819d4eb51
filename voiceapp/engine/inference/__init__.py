"""The models, and the threads in which they run.

vad (is it speech?) · recogniser (which words?) · voice (how does it sound?) · weights: their files ·
pool: inference by priority · loading: all of them, once in a process.
"""
