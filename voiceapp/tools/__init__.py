"""What a model may call.

registry: functions of this process, made tools by ``@tool`` · shipped/: the product's own · http/: services
with an OpenAPI document · mcp/: MCP servers · functions, capabilities, threads: what all of them need.
"""
