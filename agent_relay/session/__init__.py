"""Decide what a session does next, and read what its journal says; everything here is pure.

The state machine is `machine.step`: it takes a session, an input and a `DecisionContext`, and returns an
`Outcome`, which is events to journal and effects to perform. `fold.fold_events` and `fold.fold_event` turn
journal events into a `Session`; `transitions.TRANSITIONS` is the table of state changes;
`decision.choose_successor` picks the next agent. `usage_limits` and `rests` say what running out means:
budgets, full contexts, and the rest that follows. Handoffs, headless turns and what people read about a
session have folders of their own. The engine calls the machine; race, the store, usage and the faces call
the folds and views. Nothing here waits, reads, writes or asks for the time.
"""
