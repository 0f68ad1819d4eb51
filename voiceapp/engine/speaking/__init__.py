"""From text to audio at the pace of speech.

reply: the provider's words → sentences → samples with the time of each word → the client, little ahead.
"""
