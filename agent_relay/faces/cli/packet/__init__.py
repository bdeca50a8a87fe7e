"""`agent-relay packet`."""
