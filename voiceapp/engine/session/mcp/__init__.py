"""The MCP servers that a client names: what they have, and the calls of it. Pure."""
