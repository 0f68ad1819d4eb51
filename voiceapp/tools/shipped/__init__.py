"""The product's own tools.

clock_and_sums · units · session: timers, notes, recalling, hanging up and handing over.
"""
