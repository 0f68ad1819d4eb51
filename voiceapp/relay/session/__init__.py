"""One live session; it outlives the page's socket and the service's.

live: plan → conversation, link, tools, capabilities (timers), recorder, outbox, microphone, transcoding,
attachment (the page's socket), clock → life: its tasks and the one way (ending) in which they end.
"""
