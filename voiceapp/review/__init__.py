"""What is made of a session that is over.

worker: every session in its turn → summary (a title and a summary, extractive where no model answers) ·
evaluation, views: an administrator has one judged · remarks: a conversation as text.
"""
