"""Turn screens, records and the passing of time into signals, by an adapter's rules.

`detector` is one leg's detector; `_limit_rules`, `_screen_notices`, `_conversation`, `usage_windows`,
`_continuation` and `_reported_signals` are its parts. `screen_state` reads what an agent is doing,
`context_gauge` how full its context is, `_resets` when a limit ends, and `window_usage` carries usage
windows to the faces. Public names: `Detector`, `read_state`, `read_input`, `ContextGauge`, `WindowUsage`.
Called by the engine's monitor of a leg, by the replay command and by the shell's status line. Pure: `now`
is an argument.
"""
