"""Template tags of the pages: what is known of their files."""
