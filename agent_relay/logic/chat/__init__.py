"""Several agents in turns over one session: what was said, who is next, and what they are told."""
