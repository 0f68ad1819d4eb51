"""Programs that talk to a server from outside; only commands start them.

talk (with sound_file): a page in a shell · nnrp: a client of /nnrp · model_host, chat_as_responses: a chat
endpoint connected as a model host · address: where the server is.
"""
