"""One session of the embedded engine as a state machine: client events and facts in, actions out; pure.

session → config, items, buffer, responses (response), transcripts, mcp → actions · fields: what becomes of
all that clients may send · validation, tool_validation: the checks · event_types: which events there are.
"""
