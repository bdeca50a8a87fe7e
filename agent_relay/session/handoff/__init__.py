"""Decide how a session passes from one agent to the next.

Public: `lifecycle` (`begin_handoff`, `handle_delivery`, `try_roll_back`: choose, begin, publish, deliver,
roll back), `interventions` (`build_handoff_plan`, `intervene`: what a person does to a handoff) and
`history.HandoffHistory`; what a handoff inherits is in `session.transitions`, the bar that shows it in
`session.views.waiting`. The state machine calls the first two, the engine asks for plans, and
`agent-relay handoff` reads the history.
"""
