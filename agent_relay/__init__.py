"""agent-relay: a coding agent hits its limit, the work goes on in another from the same point."""

__version__ = "0.1.0"
