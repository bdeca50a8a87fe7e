"""Decide what follows from full contexts, near limits and used-up budgets.

Public: `usage_limits` (a document, a packet, relief, a handoff, the end) and `standbys` (the next agent
started ahead of a limit, and dropped again). The state machine, recovery and turns call them; the engine's
trackers use `usage_limits.find_level`.
"""
