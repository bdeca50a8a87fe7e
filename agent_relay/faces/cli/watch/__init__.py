"""`agent-relay watch`."""
