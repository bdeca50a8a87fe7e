"""Own all sessions of one user in one process: its socket, its life, and the operations it answers.

Started on demand as `python -m agent_relay.daemon` by `client`. `run` serves until it is asked to stop, keeps
socket and lock in place and has the operations on the daemon itself; `server` reads requests and notifies
subscribers of changes, `_application` composes `engine` and `race` and collects the functions that perform
the operations of `domain`'s table; `_log` is the log file. Nobody imports this room but its own program.
"""
