"""What a session under watch looks like: one view for the terminal, JSON and the page in a browser."""
