"""Turn screens, records and the passing of time into signals, by an adapter's rules.

`detector` is one leg's detector; `_limits` (limits by rules, each reported once), `_conversation` (who spoke
last, and whether the agent goes on by itself) and `reported_usage` (how full its usage windows and its
context are) are its parts. `screen_state` reads what an agent is doing and what it announces on its screen,
`_resets` when a limit ends. `window_tracks` follows usage windows through readings that may be wrong and
decides when one is near its limit, and `window_usage` carries them to the faces. Public names: `Detector`,
`AgentState`, `read_state`, `read_input`, `ContextGauge`, `WindowTracks`, `WindowReading`, `WindowUsage`.
Called by the engine's monitor of a leg, by `agent-relay replay` and `sources.replay`, and by the shell's
status line. Pure: `now` is an argument.
"""
