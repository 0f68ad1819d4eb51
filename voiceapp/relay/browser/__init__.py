"""The page's sockets, /ws/voice/ and, for the self-check, /ws/echo/.

consumer: one socket → login: who is it? → admission: may they? → start: a session that is new,
continued or come back to. echo: what comes is sent back, so that a page can measure its line.
"""
