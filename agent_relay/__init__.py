"""Let the work of a coding agent that hits its limit go on in another agent, from the same point."""

__version__ = "0.1.0"
