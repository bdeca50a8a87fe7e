"""`agent-relay race`."""
