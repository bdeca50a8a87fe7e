"""`agent-relay export`."""
