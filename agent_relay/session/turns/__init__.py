"""Headless turns: prompts for agents without a screen, and chats made of such turns.

Public: `lifecycle` (how a turn begins and ends), `state` (what the journal says of one), `output` (what
an agent writes on its standard output), `report` (what followers of a turn are told) and `chat` (several
agents taking turns). The state machine, the engine, race runners and the readers of conversation totals
call them.
"""
