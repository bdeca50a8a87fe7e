"""`agent-relay metrics`."""
