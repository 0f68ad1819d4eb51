"""Tools that an assistant can use while it talks."""
