"""Getting a packet or a task into a ready agent: pasted once, submitted once, never over a person's typing.

Public names: SessionDeliveries, deliver_text, type_line. Called by the effect runner and by what keeps a
context from filling up.
"""
