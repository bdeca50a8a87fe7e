"""Our own environment variables that processes hand on to those they start."""

LEG_VARIABLE = "AGENT_RELAY_LEG"
"""The leg's id: its processes are found by it."""
RACE_VARIABLE = "AGENT_RELAY_RACE"
"""The race's id, a slash, and the runner's number, of a race's test: its processes are found by it."""
KEY_VARIABLE = "AGENT_RELAY_AT_KEY"
"""The session whose person has a command run behind the relay key; for that command alone."""
