"""Readers of the agents' native transcripts; the one place in code that knows the agents by name."""
