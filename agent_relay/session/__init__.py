"""Decide what a session does next, and read what its journal says; everything here is pure.

The state machine is `machine.step`: it takes a session, an input and a `DecisionContext`, and returns an
`Outcome`, which is events to journal and effects to perform. `fold.fold_events` and `fold.fold_event` turn
journal events into a `Session`; `transitions.TRANSITIONS` is the table of state changes, and the module
reads warnings and budgets off a journal; `decision.choose_successor` picks the next agent. `limits` and
`rests` say what running out means: budgets, full contexts, and the rest that follows; `ownership` says
whose a session is. `handoffs` decides each step of a handoff, `interventions` (`build_handoff_plan`,
`cancel`, `retry`, `close`) what a person does to one; `handoff_history.HandoffHistory` is for those who
read about them. Headless turns (`turns`) and what people read about a session (`views`) have rooms of their
own. The engine calls the machine; the store, `usage` and the faces call the folds, race only `turns`.
Nothing here waits, reads, writes or asks for the time.
"""
