"""The manuals, and the program that writes the parts of them that come from the code."""
