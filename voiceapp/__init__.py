"""A realtime voice application on Django Channels: people talk with an AI in the browser."""
