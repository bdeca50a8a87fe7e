"""Keep every session at work on this machine: open, create, adopt, recover after a crash, stop.

Public names: `SessionRegistry`, which keeps a `Host` for each; the functions of `commands` (`open_session`,
`hand_over`, `stop_session`, `recover_sessions`) and `opener` (`enter_session`, `take_turn`) on it;
`OpenRequest` of `creation`, and `wait_for` of `change_notifier`. Called by `operations`, `daemon` and `race`.
"""
