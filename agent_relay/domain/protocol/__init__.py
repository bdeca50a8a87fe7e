"""What other processes are sent: the wire protocol, and what commands print for programs.

`wire` (`render_line`, `parse_line`), `operations` (the one table: `OPERATIONS`, each with its fields) and
`requests` (`Handler`, `App`) are between clients and the daemon; `run_output` and `watch_output` are the
lines of `run`, `chat` and `watch --json`, with their published schemas; `live_session` is what the daemon
alone knows of a session at work; `figure` is one exported metric; `quick_json` is strict JSON, in one
line of ASCII. Clients, the daemon, the engine and the faces use it.
"""
