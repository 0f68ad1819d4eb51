"""The embedded Realtime server: hears, thinks, speaks, in the protocol of Azure OpenAI.

server/: sockets, keys → session/: the protocol's state machine (pure) → hearing/ and turns/: microphone to
turns and words · speaking/: text to paced audio · inference/: the models and the threads they run in.
"""
