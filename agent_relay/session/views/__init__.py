"""Show a session as people and fast commands see it.

Public: `messages` (lines for whoever works in the session), `event_lines` (journal events in words, and
`list_history`), `waiting` (`build_bar`, `build_rest_view`: what a person is shown while they wait),
`timeline` (`TimelineFold`, `build_timeline`: the session over time) and `summary.summarize`, which commands
such as `status` use because it is fast to import. Called by the engine, the store and the faces; the state
machine words its messages by it.
"""
