"""Decide how headless turns go: prompts for agents without a screen, and chats made of such turns.

Public: `lifecycle` (how a turn begins, and what the end of an agent's process means), `output` (what an agent
writes on its standard output), `report` (what followers of a turn are sent) and `chat` (several agents taking
turns). What the journal says of a turn is in `session.transitions`. The state machine, the engine, race
runners and `sources.record_fields` call them; `redact` uses `chat`.
"""
