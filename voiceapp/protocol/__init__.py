"""The Realtime protocol and what is spoken beside it; pure.

events (structs) · codec (JSON both ways), repair (what services break) · dialects (GA, preview, contract) ·
page: the page's own socket · chat_chunks: chat completions' stream · tool_calls (the four events of the
contract), tool_call_assembler: chunks → those events.
"""
