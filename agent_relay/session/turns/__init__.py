"""Headless turns: prompts for agents without a screen, and chats made of such turns.

Public: `lifecycle` and `leg_end` (how a turn begins and ends), `output` (what an agent writes on its
standard output), `report` (what followers of a turn are sent) and `chat` (several agents taking turns).
What the journal says of a turn is in `session.turn_state`. The state machine, the engine, race runners and
`sources.record_fields` call them; `redact` uses `chat`.
"""
