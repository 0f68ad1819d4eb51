"""Who thinks, behind two interfaces.

provider: TextProvider for conversations, Completions for chat requests ← providers: which one, by the
settings ← brain/, chat/, model_host/ · asking, checked_calls, structured, sentences: what all of them need.
"""
