"""Chat completions and tool-call events over NNRP/1.

consumer: /nnrp → connection (state machine, with operations, wire, layouts, data_layouts, profile,
replies: pure) → work: one operation, by backing · outbox · events_http: /v1/events.
"""
