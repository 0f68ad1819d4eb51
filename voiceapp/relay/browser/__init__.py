"""The page's socket, /ws/voice/.

consumer: one socket → login: who is it? → admission: may they? → start: a session that is new,
continued or come back to.
"""
