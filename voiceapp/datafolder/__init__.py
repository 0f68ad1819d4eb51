"""What lies in the data folder besides rows and sound.

keys: secrets made once · processes: which server processes live · server_note: where a server listens.
"""
