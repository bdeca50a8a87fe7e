"""The one process per user that owns sessions: its socket, its life, and the operations it answers.

Started on demand as `python -m agent_relay.daemon` by `client`. `run` serves until it is asked to stop,
`server` reads requests, `_notices` notifies subscribers of changes, `_application` composes `engine` and
`race` and collects the functions that perform the operations of `domain`'s table. Nobody imports it but its
own program.
"""
