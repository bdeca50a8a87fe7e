"""The per-user process that owns sessions."""
