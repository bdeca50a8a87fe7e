"""Environment variables by which the processes of a leg or of a race's test are found."""

LEG_VARIABLE = "AGENT_RELAY_LEG"
"""The leg's id."""
RACE_VARIABLE = "AGENT_RELAY_RACE"
"""The race's id, a slash, and the runner's number."""
