"""What an assistant is, whoever keeps it; pure.

assistant: the settings of one, as a session runs with them · mcp_servers, http_tools: services whose tools
it may use, with their limits and secrets.
"""
