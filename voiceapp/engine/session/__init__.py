"""One session of the embedded engine as a state machine: client events and facts in, actions out; pure.

session → config, items, buffer, responses (response), transcripts, mcp_tools (mcp_calls) → actions ·
validation, tool_validation: what clients may send · event_types: which events there are.
"""
