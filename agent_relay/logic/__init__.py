"""Decisions as pure functions: nothing here waits, reads, writes or asks the time."""
