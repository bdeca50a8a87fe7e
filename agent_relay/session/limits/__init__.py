"""What running out means for a session: limits, budgets, full contexts, and the rest that follows.

Public: `warnings` (what the journal says of all three), `context` and `budgets` (what follows from them),
`ledger` (which agent rests until when), `rests` (what happens when a limit ends) and `rest_view` (what a
person is shown meanwhile). The state machine calls them; the engine, the fold and the messages use
`warnings` and `ledger`, too.
"""
