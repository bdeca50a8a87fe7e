"""The one process per user that owns sessions: its socket, its life, and the table of what it answers.

Started on demand as `python -m agent_relay.daemon` by `client`. `run` serves until it is asked to stop,
`server` reads requests, `notices` tells subscribers of changes, `application` composes `engine` and `race`
and collects their operations. Public names: open_app, run, Server, Notices. Nobody imports this room but
its own program.
"""
