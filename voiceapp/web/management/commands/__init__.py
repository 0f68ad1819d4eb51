"""One module a command, named as the command is."""
