"""`agent-relay handoff`."""
