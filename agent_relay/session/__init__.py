"""Decide what a session does next, and read what its journal says; everything here is pure.

The state machine is `machine.step`: it takes a session, an input and a `DecisionContext`, and returns an
`Outcome`, which is events to journal and effects to perform. `fold.fold_events` and `fold.fold_event` turn
journal events into a `Session`; `transitions.TRANSITIONS` is the table of state changes;
`decision.choose_successor` picks the next agent. `usage_limits` and `rests` say what running out means:
budgets, full contexts, and the rest that follows; `warnings` reads them off a journal, `ownership` says whose
a session is. Handoffs (`handoff`), headless turns (`turns`) and what people read about a session (`views`)
have rooms of their own. The engine calls the machine; the store, `usage` and the faces call the folds, race
only `turns`. Nothing here waits, reads, writes or asks for the time.
"""
