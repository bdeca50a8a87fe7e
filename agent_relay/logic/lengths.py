"""How much of what agents say is told; who shows it knows by this whether it was cut."""

LONGEST_RESULT = 4_000
"""Characters of a tool's input or output that are told; the transcript has the rest."""
