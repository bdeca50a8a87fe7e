"""Give a ready agent a packet or a task: pasted once, submitted once, never over a person's typing.

Public names: `SessionDeliveries` and `type_line`, both in `text_delivery`; `_submission` presses return and
checks that the agent took the text. Called by the effect runner and by what keeps a context from filling up.
"""
