"""What running out means for a session: limits, budgets, full contexts, and the rest that follows.

Public: `context` and `budgets` (what follows from a full context or a used-up budget), `ledger` (which
agent rests until when), `rests` (what happens when a limit ends) and `rest_view` (what a person is shown
meanwhile). The state machine calls `context`, `budgets`, `ledger` and `rests`; the engine `ledger`,
`context` and `rest_view`; `agent-relay limits` uses `ledger`. What the journal says of limits, budgets and
contexts is in `session.warnings`.
"""
