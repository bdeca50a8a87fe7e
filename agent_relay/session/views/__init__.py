"""A session as people and fast commands are shown it.

Public: `messages` (lines for whoever works in the session), `event_lines` (journal events in words),
`history_lines.list_history` and `summary.summarize`, which commands such as `status` use because it is
fast to import. Called by the engine, the store and the faces; the state machine takes the names of ends
from here.
"""
