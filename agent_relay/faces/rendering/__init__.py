"""What a turn's events look like on a terminal."""
