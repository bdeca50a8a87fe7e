"""Keep every session at work on this machine: open, create, adopt, recover after a crash, stop.

Public names: `SessionRegistry`, which keeps a `Host` for each, and `find`s and follows them; the functions of
`commands` on it (`open_session`, `stop_session`, `recover_sessions`, `hold_session`, `take_turn`);
`OpenRequest` of `creation`. Called by the operations, `daemon` and `race`.
"""
