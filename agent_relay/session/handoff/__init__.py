"""How a session passes from one agent to the next.

Public: `lifecycle` (choose, begin, publish, deliver, roll back), `interventions` (what a person does to a
handoff), `history.HandoffHistory` and `status_bar.build_bar`; what a handoff inherits is in
`session.lineage`. The state machine calls the first ones, the engine asks for plans and bars, and
`agent-relay handoff` reads the history.
"""
